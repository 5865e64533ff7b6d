// ncclTunerPlugin_v4: NCCL 2.24 to 2.27.
#include "plugin/tuner_table.h"

namespace slime::plugin::table {

SLIME_EXPORT const nccl::TunerV4 ncclTunerPlugin_v4 = {
    .name = kName,
    .init = tuner_init_v2,
    .get_coll_info = tuner_info_v4,
    .destroy = tuner_destroy,
};

}  // namespace slime::plugin::table
