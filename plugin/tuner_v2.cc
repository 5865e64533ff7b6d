// ncclTunerPlugin_v2: NCCL 2.21.
#include "plugin/tuner_table.h"

namespace slime::plugin::table {

SLIME_EXPORT const nccl::TunerV2 ncclTunerPlugin_v2 = {
    .name = kName,
    .init = tuner_init_v2,
    .get_coll_info = tuner_info_v2,
    .destroy = tuner_destroy,
};

}  // namespace slime::plugin::table
