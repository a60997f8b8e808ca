// SPDX-License-Identifier: Apache-2.0
#include "train/glm/solvers/null_intercept.h"

#include <gtest/gtest.h>

#include "train/glm/fit_glm.h"

namespace tenon {
namespace {

/// Offsets that leave nearly no information at the mean response; the deviances are R 4.2's.
TEST(NullInterceptTest, NullDeviancesWithLargeOffsetsAreThoseOfR) {
  struct Model {
    const char* formula;
    double null, residual;
  };
  for (const Model& wanted :
       {Model{"late ~ temp + offset(hour)", 116219.68886015, 116074.789971183},
        {"late ~ temp + offset(I(0.1*temp))", 75906.9293670053, 54571.4359386038}}) {
    SCOPED_TRACE(wanted.formula);
    const auto fit = FitGlm(wanted.formula, {"share/flights/flights_sample.csv.gz"},
                            {.family = GlmFamily::kBinomial});
    ASSERT_TRUE(fit.ok()) << fit.status();
    EXPECT_NEAR(fit->null_deviance, wanted.null, 1e-9 * wanted.null);
    EXPECT_NEAR(fit->residual_deviance, wanted.residual, 1e-9 * wanted.residual);
  }
}

}  // namespace
}  // namespace tenon
