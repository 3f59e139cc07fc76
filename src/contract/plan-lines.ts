import type { Plan } from "./builds.ts";

/** Formats a plan in the style of a build log, as `git push -o plan` and `berth plan` print it. */
export function planLines(plan: Plan): string[] {
  const { build, failure } = plan;
  return [
    ...head(plan),
    ...(failure === null ? [] : [` !     ${failure.summary} (${failure.code})`, ` !     ${failure.hint}`]),
    ...(build === null ? [] : buildLines(build)),
    ...(build === null ? [] : runLines(plan)),
    ...section(
      "Cron jobs of berth.json",
      plan.crons.map(
        ({ name, schedule, path, command, change }) => `${name}: ${schedule} ${path ?? command} (${change})`,
      ),
    ),
    ...missing(plan.missing_variables),
  ];
}

const titles: Readonly<Record<Plan["outcome"], string>> = {
  deploys: "would be built and deployed",
  nothing_to_deploy: "nothing to deploy",
  fails: "would fail before the build begins",
};

function head({ outcome, commit, branch, root, berth_file, overruled, watch, ahead }: Plan): string[] {
  const what = commit === null ? "These files" : `Commit ${commit.slice(0, 8)}`;
  return [
    `-----> ${what} on ${branch}: ${titles[outcome]}`,
    ...(outcome === "nothing_to_deploy" ? [detail(`no file changed in ${(watch ?? []).join(", ")}`)] : []),
    ...(ahead === null ? [] : [detail(ahead.text)]),
    ...(root === "" ? [] : [detail(`the folder ${root}`)]),
    ...(berth_file === null ? [] : [detail(`settings of ${berth_file}`)]),
    ...overruled.map(({ setting, used, in_file }) =>
      detail(`${setting} is set to ${used} for the project; ${in_file} of berth.json is not used`),
    ),
  ];
}

function buildLines({
  name,
  uses_dockerfile,
  tools,
  notes,
  steps,
  earlier_build,
}: NonNullable<Plan["build"]>): string[] {
  const earlier = earlier_build === null ? [] : [`reused from build #${earlier_build.number} of the same commit`];
  return [
    `-----> ${uses_dockerfile ? "The Dockerfile decides" : `${name} detected`}`,
    ...[...tools, ...notes, ...earlier].map(detail),
    ...section(
      "Build",
      steps.map(({ stage, command }) => (stage === "build" ? command : `${stage}: ${command}`)),
    ),
  ];
}

const releaseReaches = "it may change and delete anything in the project's database and in $STORAGE_DIR";

function runLines({ release_command, processes, processes_ended, port, health_path }: Plan): string[] {
  const shown = processes.map(({ type, command, because, replicas, overlap }) => {
    const from = because === null ? "" : `, because of ${because}`;
    const times = replicas === 1 ? "" : `, ${replicas} replicas`;
    return `${type}: ${command ?? "known after the build"}${from}${times}${type === "web" || !overlap ? "" : ", overlaps"}`;
  });
  const hasWeb = processes.some(({ type }) => type === "web");
  return [
    ...(release_command === null
      ? []
      : section("Release command, before traffic switches", [release_command, releaseReaches])),
    ...section("Processes", [
      ...shown,
      ...processes_ended.map((type) => `${type} is stopped: the source no longer defines it`),
    ]),
    ...(hasWeb ? [detail(`requests go to ${port === null ? "the port in $PORT" : `port ${port}`}`)] : []),
    ...(hasWeb
      ? [detail(`healthy when ${health_path === null ? "/ answers below 500" : `${health_path} answers 200 to 399`}`)]
      : []),
  ];
}

function missing(names: readonly string[]): string[] {
  if (names.length === 0) return [];
  return [
    ` !     .env.example names variables that are not set: ${names.join(", ")}`,
    detail("set them with: berth env set NAME=value"),
  ];
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`-----> ${title}`, ...lines.map(detail)];
}

const detail = (text: string): string => `       ${text}`;
