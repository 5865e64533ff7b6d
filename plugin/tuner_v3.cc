// ncclTunerPlugin_v3: NCCL 2.22 and 2.23.
#include "plugin/tuner_table.h"

namespace slime::plugin::table {

SLIME_EXPORT const nccl::TunerV3 ncclTunerPlugin_v3 = {
    .name = kName,
    .init = tuner_init_v2,
    .get_coll_info = tuner_info_v3,
    .destroy = tuner_destroy,
};

}  // namespace slime::plugin::table
