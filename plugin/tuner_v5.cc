// ncclTunerPlugin_v5: NCCL 2.28 and later.
#include "plugin/tuner_table.h"

namespace slime::plugin::table {

SLIME_EXPORT const nccl::TunerV5 ncclTunerPlugin_v5 = {
    .name = kName,
    .init = tuner_init_v5,
    .get_coll_info = tuner_info_v4,
    .finalize = tuner_destroy,
};

}  // namespace slime::plugin::table
