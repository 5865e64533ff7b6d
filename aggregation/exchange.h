// All ranks get the cards of all, by the means that the options name.
#pragma once

#include <vector>

#include "aggregation/card.h"
#include "settings/settings.h"

namespace slime::aggregation {

// Fails if the options name no means, or two.
Result<void> check_means(const Options& options);
Result<std::vector<Card>> exchange(const Options& options, const Settings& settings,
                                   const Card& own);

}  // namespace slime::aggregation
