#include "doctor/job_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

JobEnvironment launched(std::string_view script) {
  return read_job_script(script).environment;
}

std::vector<std::string> finding_kinds(std::string_view script) {
  std::vector<std::string> kinds;
  for (const Finding& finding : read_job_script(script).findings)
    kinds.push_back(finding.kind);
  return kinds;
}

TEST(JobScript, PassesOnWhatItExports) {
  EXPECT_THAT(
      launched("#!/bin/sh\n"
               "#SBATCH --export=ALL,A=1,B=x  # C=0\n"
               "# export C=1\n"
               "export D=\"two words\" E='$HOME' \\\n  F=3; G=4 srun -e "
               "H=5 prog --opt=6 --env=I=7 J=a,b\n"),
      UnorderedElementsAre(Pair("A", "1"), Pair("B", "x"),
                           Pair("D", "two words"), Pair("E", "$HOME"),
                           Pair("F", "3"), Pair("G", "4"), Pair("H", "5"),
                           Pair("I", "7"), Pair("J", "a,b")));
}

TEST(JobScript, PassesOnWhatLaunchersAreTold) {
  EXPECT_THAT(
      launched("export A=1\nsrun --export=ALL,B=2 env C=3 python x.py"),
      UnorderedElementsAre(Pair("A", "1"), Pair("B", "2"), Pair("C", "3")));
  EXPECT_THAT(launched("mpirun -x A=1 -genv B 2 python x.py"),
              UnorderedElementsAre(Pair("A", "1"), Pair("B", "2")));
  EXPECT_THAT(launched("docker run -e A=1 --env B=2 image"),
              UnorderedElementsAre(Pair("A", "1"), Pair("B", "2")));
  EXPECT_THAT(launched("srun bash -lc 'export A=1; B=\"2 3\" torchrun x.py'"),
              UnorderedElementsAre(Pair("A", "1"), Pair("B", "2 3")));
  EXPECT_THAT(launched("export A=1 B=2\nenv -u A torchrun x.py"),
              UnorderedElementsAre(Pair("B", "2")));
}

TEST(JobScript, EndsAtTheLastLaunch) {
  EXPECT_THAT(launched("export A=1\nsrun python x.py\nunset A\nexport B=2"),
              UnorderedElementsAre(Pair("A", "1")));
  EXPECT_THAT(launched("export A=1 B=1\nunset A"),
              UnorderedElementsAre(Pair("B", "1")));
}

TEST(JobScript, ExpandsWhatItKnows) {
  EXPECT_THAT(
      launched("D=/d/$USER\nexport A=$D/x B=${C:-8}/${D} E=${F}$(date "
               "+'%H') G=\"$D and $H\""),
      UnorderedElementsAre(Pair("A", "/d/$USER/x"), Pair("B", "8//d/$USER"),
                           Pair("E", "${F}$(date +'%H')"),
                           Pair("G", "/d/$USER and $H")));
  EXPECT_THAT(read_job_script("export A=$USER", {{"USER", "me"}}).environment,
              UnorderedElementsAre(Pair("A", "me")));
}

TEST(JobScript, IsNotConfusedByTextAndHereDocuments) {
  EXPECT_THAT(launched("echo \"set TORCH_X=1, it's slow\" > log 2>&1\n"
                       "cat > notes.txt <<EOF\n"
                       "don't set TORCH_Y=1\nexport TORCH_Z=1\nEOF\n"
                       "srun bash <<-'END' &> out\n\texport A=1\n\tEND\n"
                       "cat <<E > env.sh\nexport B=2\nE\n"
                       "torchrun x.py"),
              UnorderedElementsAre(Pair("A", "1"), Pair("B", "2")));
  EXPECT_THAT(launched("export A=1 # it's\nexport B='unterminated"),
              UnorderedElementsAre(Pair("A", "1"), Pair("B", "unterminated")));
}

TEST(JobScript, FindsWhatReachesNobody) {
  EXPECT_THAT(finding_kinds("TORCH_FR_BUFFER_SIZE=1\nsrun python x.py"),
              ElementsAre("not_exported"));
  EXPECT_THAT(finding_kinds("set -a\nTORCH_FR_BUFFER_SIZE=1\nsrun python x"),
              IsEmpty());
  EXPECT_THAT(finding_kinds("TORCH_X=1\nexport TORCH_X\nsrun x.py"), IsEmpty());
  EXPECT_THAT(finding_kinds("#SBATCH --export=NONE\nexport TORCH_X=1\n"
                            "srun python x.py"),
              ElementsAre("not_passed_on"));
  EXPECT_THAT(finding_kinds("export TORCH_X=1\nsrun --export=A=2 python x.py"),
              ElementsAre("not_passed_on"));
  for (const char* const cure :
       {"unset SLURM_EXPORT_ENV", "export SLURM_EXPORT_ENV=ALL"})
    EXPECT_THAT(finding_kinds(std::string("#SBATCH --export=NONE\n"
                                          "export TORCH_X=1\n") +
                              cure + "\nsrun python x.py"),
                IsEmpty());
  EXPECT_THAT(finding_kinds("source env.sh\nsrun python x.py"),
              ElementsAre("sourced_file"));
}

TEST(JobScript, KnowsTheFoldersItMakes) {
  EXPECT_THAT(read_job_script("D=/d/1\nmkdir -p \"$D\"").folders,
              ElementsAre("-p", "/d/1"));
}

TEST(JobScript, ReadsAnyText) {
  // Every prefix of a script with all that it knows, and nested scripts.
  const std::string script =
      "#SBATCH --export=A\nexport A=\"$B ${C:-${D}} `e` $(f (g))\" 2>&1 "
      "<<E\nx\n"
      "E\nbash -c 'sh -c \"A=1 srun\"' <<< y\\\nz";
  for (std::size_t size = 0; size <= script.size(); ++size)
    read_job_script(std::string_view(script).substr(0, size));
  std::string nested = "srun";
  for (int i = 0; i < 20; ++i)
    nested = "bash -c \"" + nested + "\"";
  read_job_script(nested);
}

TEST(EnvironmentFile, TakesWhatEnvAndDockerWrite) {
  EXPECT_THAT(
      read_environment_file("# comment\nA=/my dumps/x\nB=it's \"fine\" # 1\r\n"
                            "F%%=() {  C=1\n C=2\n}\nHOME\nD=\"5\"\nA=2\n")
          .environment,
      UnorderedElementsAre(Pair("A", "2"), Pair("B", "it's \"fine\" # 1"),
                           Pair("D", "5")));
  EXPECT_THAT(
      read_environment_file(std::string_view("A=1\0B=2\n3\0", 10)).environment,
      UnorderedElementsAre(Pair("A", "1"), Pair("B", "2\n3")));
  EXPECT_THAT(
      read_environment_file("declare -x A=\"1 2\"\ndeclare -x B\n").environment,
      UnorderedElementsAre(Pair("A", "1 2")));
}

}  // namespace
}  // namespace postflight
