// SPDX-License-Identifier: Apache-2.0
#include "train/glm/text/number_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace tenon {
namespace {

TEST(NumberTextTest, ThousandsHaveCommas) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(261876), "261,876");
  EXPECT_EQ(CountText(-1234567), "-1,234,567");
  EXPECT_EQ(FixedText(286969.049, 1), "286,969.0");
  EXPECT_EQ(FixedText(-128168.7196, 1), "-128,168.7");
  EXPECT_EQ(FixedText(999.96, 1), "1,000.0");
  EXPECT_EQ(FixedText(std::nan(""), 1), "NA");
  EXPECT_EQ(FixedText(-INFINITY, 1), "-Inf");
}

TEST(NumberTextTest, SizesHaveUnits) {
  EXPECT_EQ(BytesText(17), "17 bytes");
  EXPECT_EQ(BytesText(84999), "85 KB");
  EXPECT_EQ(BytesText(16'200'000), "16.2 MB");
  EXPECT_EQ(BytesText(999'600), "1 MB");
  EXPECT_EQ(BytesText(1'600'000'000), "1.6 GB");
}

TEST(NumberTextTest, PValuesAreAsInRsSummary) {
  EXPECT_EQ(PValueText(0), "< 2e-16");
  EXPECT_EQ(PValueText(2.2e-16), "< 2e-16");
  EXPECT_EQ(PValueText(1.7412e-12), "1.74e-12");
  EXPECT_EQ(PValueText(0.00001), "1.00e-05");
  EXPECT_EQ(PValueText(0.000604), "0.000604");
  EXPECT_EQ(PValueText(0.1843), "0.184");
  EXPECT_EQ(PValueText(0.99961), "1.000");
  EXPECT_EQ(PValueText(1), "1.000");
  EXPECT_EQ(PValueText(std::nan("")), "NA");
}

TEST(NumberTextTest, EstimatesHaveTheDigitsThatTheirErrorsGiveAMeaning) {
  const auto both = [](double estimate, double error) {
    const EstimateDigits shape(estimate, error, 4);
    return shape.Text(estimate) + " " + shape.Text(error) + " " + shape.Text(estimate, 2);
  };
  EXPECT_EQ(both(16.99215478, 2.40886920), "16.992 2.409 17.0");
  EXPECT_EQ(both(0.117525923, 0.00114312), "0.117526 0.001143 0.1175");
  EXPECT_EQ(both(-0.00001, 0.5), "0.0000 0.5000 0.00");
  EXPECT_EQ(both(123456.789, 12345.6), "123457 12346 123457");
  EXPECT_EQ(both(3, 0.0099999), "3.00000 0.01000 3.000");
  // Very small numbers have powers of ten, with as many digits as fit to the error's.
  EXPECT_EQ(both(1.23456789e-9, 2.5e-11), "1.23457e-09 2.500e-11 1.235e-09");
  EXPECT_EQ(both(1.5e14, 2.5e11), "1.500000e+14 2.500e+11 1.5000e+14");
  // Without an error these are the first five.
  EXPECT_EQ(EstimateDigits(0.0016398, NAN, 4).Text(0.0016398), "0.0016398");
  EXPECT_EQ(EstimateDigits(0, 0, 4).Text(0), "0.0000");
  EXPECT_EQ(EstimateDigits(NAN, NAN, 4).Text(NAN), "NA");
}

TEST(NumberTextTest, SignificantDigitsEndWhereAPowerOfTenIsShorter) {
  EXPECT_EQ(SignificantText(1.62104, 4, 3), "1.621");
  EXPECT_EQ(SignificantText(11.8364, 4, 3), "11.84");
  EXPECT_EQ(SignificantText(26414.4, 4, 3), "26,414");
  EXPECT_EQ(SignificantText(1.5e9, 4, 3), "1.500e+09");
  EXPECT_EQ(SignificantText(1.5e-9, 4, 3), "1.500e-09");
  EXPECT_EQ(SignificantText(0, 4, 3), "0.000");
  EXPECT_EQ(SignificantText(INFINITY, 4, 3), "Inf");
}

TEST(NumberTextTest, WidthsAreThoseOfATerminal) {
  EXPECT_EQ(WidthOf("Zürich"), 6);
  EXPECT_EQ(WidthOf("空港"), 4);
  EXPECT_EQ(WidthOf("e\xCC\x81"), 1);  // an accent to be combined
  EXPECT_EQ(WidthOf("…χ²"), 3);
  EXPECT_EQ(WidthOf(""), 0);
}

TEST(NumberTextTest, TextsCannotMoveTheCursor) {
  EXPECT_EQ(ShownText("a\x1B[2J\nb\tc"), "a�[2J�b�c");
  EXPECT_EQ(ShownText("bad \xFF\xC3"), "bad ��");
  EXPECT_EQ(ShownText("\xE2\x80\xAE"
                      "abc"),
            "�abc");  // written from right to left
  EXPECT_EQ(ShownText("Zürich"), "Zürich");
}

TEST(NumberTextTest, WideNamesLoseTheirMiddle) {
  EXPECT_EQ(CutInMiddle("carrier", 7), "carrier");
  EXPECT_EQ(CutInMiddle("carrier:origin", 9), "carr…igin");
  EXPECT_EQ(CutInMiddle("carrier:origin", 8), "carr…gin");
  EXPECT_EQ(CutInMiddle("carrier:origin", 3), "c…n");
  for (const std::string name : {"空港空港空港空港空港空港",
                                 "ne\xCC\x81"
                                 "e\xCC\x81"
                                 "e\xCC\x81"
                                 "e\xCC\x81"
                                 "ee",
                                 "a空b港c空d港e空f"}) {
    for (int64_t width = 3; width < 14; ++width) {
      const std::string cut = CutInMiddle(name, width);
      EXPECT_LE(WidthOf(cut), width) << cut;
      EXPECT_GE(WidthOf(cut), std::min(width, WidthOf(name)) - 2) << cut;
      EXPECT_EQ(ShownText(cut), cut);
    }
  }
}

}  // namespace
}  // namespace tenon
