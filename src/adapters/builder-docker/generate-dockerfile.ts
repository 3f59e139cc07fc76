import { besideApp } from "../../building/site-server.ts";
import { stepEnv, toolEnv } from "../../building/step-env.ts";
import type { PackageManagerName } from "../../detection/package-manager.ts";
import type { BuildPlan, Start, Step } from "../../detection/plan.ts";
import { quoted } from "../../kit/quoted.ts";
import { certificateVariables } from "../../sandbox/certificates.ts";

export interface ParentImages {
  readonly node: string;
  readonly python: string;
  readonly go: string;
  readonly rust: string;
  /** Includes Bundler. */
  readonly ruby: string;
  /** Includes Composer. */
  readonly php: string;
  /** Includes Maven. */
  readonly java: string;
  /** For programs without dependencies. */
  readonly plain: string;
}

export type Generated = ReturnType<typeof generateDockerfile>;

export interface Generating {
  readonly plan: BuildPlan;
  readonly parents: ParentImages;
  /** The files that determine what is installed; empty if the whole source does. */
  readonly installFiles: readonly string[];
  /** Null while it is not decided, or without a web process. */
  readonly start: Start | null;
  /** See `BuildCommands`. */
  readonly member?: string | undefined;
  /** Whether a static site's image also holds the application, for the release command. */
  readonly isWhole: boolean;
  /** Whether each step mounts the secrets with the certificates. */
  readonly certificates: boolean;
}

/** Generates a Dockerfile that does what the plan says. The build context holds the application in `app/` and the site's server beside it. */
export function generateDockerfile(generating: Generating) {
  const { plan, parents, installFiles, start, isWhole, member } = generating;
  const steps: Step[] = [];
  const run = (step: Step) => runLine(generating, step, steps.push(step) - 1);
  const source = "COPY app/ ./";
  const install = (plan.install?.steps ?? []).map(run);
  const early = installFiles.length > 0 && install.length > 0;
  const lines = [
    `FROM ${parentOf(plan, parents)} AS build`,
    "WORKDIR /app",
    `ENV PATH=/app/.venv/bin:/app/node_modules/.bin:/app/bin:$PATH`,
    ...(member === undefined ? [] : [`ENV PATH=${JSON.stringify(`/app/${member}/node_modules/.bin`)}:$PATH`]),
    ...managerLines(plan),
    ...(early ? [`COPY ${JSON.stringify([...installFiles.map((file) => `app/${file}`), "./"])}`] : [source]),
    ...install,
    ...(early ? [source] : []),
    ...[...(early ? (plan.install?.again ?? []) : []), ...plan.build, ...plan.prune].map(run),
    `FROM build AS ${listingStage}`,
    `RUN ${JSON.stringify(["/bin/sh", "-c", listing])}`,
    ...releaseLines({ plan, parents, start, isWhole }),
  ];
  return {
    text: `${lines.join("\n")}\n` /** The plan's steps, indexed by the number in their commands, see `stepIn`. */,
    steps,
  };
}

/** The stage whose file `listingFile` lists the files after the build. */
export const listingStage = "listing";
export const listingFile = "/berth-files";
export const releaseStage = "release";
/** Ids of the secrets that steps mount. */
export const secretIds = { env: "berth-env", certificates: "berth-ca", trustStore: "berth-ca-java" } as const;
const certificateFiles = { pem: "/run/berth/ca.pem", java: "/run/berth/ca.jks" };

// Skips package folders: they hold many files, and none that starts an application by itself.
const listing = `find . \\( -name node_modules -o -name .venv \\) -prune -o -type f -print | head -n 100000 > ${listingFile}`;

function parentOf({ kind }: BuildPlan, parents: ParentImages): string {
  return kind === "static" || kind === "procfile" || kind === "deno" ? parents.node : parents[kind];
}

function releaseLines({ plan, parents, start, isWhole }: Pick<Generating, "plan" | "parents" | "start" | "isWhole">) {
  const env = Object.entries(plan.env).map(([name, value]) => `ENV ${name}=${JSON.stringify(value)}`);
  if (start?.how === "static" && !isWhole) {
    const folder = start.folder === "." ? "/app/" : `/app/${start.folder}/`;
    return [
      ...[`FROM ${parents.node} AS ${releaseStage}`, "WORKDIR /app"],
      ...[`COPY ${JSON.stringify(["--from=build", folder, "./site/"]).replace('["--from=build",', "--from=build [")}`],
      "COPY static-server.mjs ./",
    ];
  }
  if (plan.kind === "go" || plan.kind === "rust") {
    const path = "ENV PATH=/app/bin:$PATH";
    return [`FROM ${parents.plain} AS ${releaseStage}`, "WORKDIR /app", path, "COPY --from=build /app ./", ...env];
  }
  const server = start?.how === "static" ? [`COPY static-server.mjs ./${besideApp}`] : [];
  return [`FROM build AS ${releaseStage}`, ...env, ...server];
}

const managers: Readonly<Record<PackageManagerName, string | null>> = {
  npm: null,
  pnpm: "pnpm",
  yarn: "yarn",
  "yarn-modern": "@yarnpkg/cli-dist",
  bun: "bun",
};

/** Installs package managers; the base image includes npm. */
function managerLines({ tools }: BuildPlan): string[] {
  return tools.flatMap((wish) => {
    if (wish.tool === "deno") return [installLine(`deno@${wish.wish}`)];
    const name = wish.tool === "package-manager" ? managers[wish.manager.name] : null;
    if (wish.tool !== "package-manager" || (name === null && wish.manager.version === null)) return [];
    return [installLine(`${name ?? "npm"}@${wish.manager.version ?? "latest"}`)];
  });
}

function installLine(wanted: string): string {
  const args = ["npm", "install", "--global", "--force", "--no-audit", "--no-fund", wanted];
  return `RUN ${JSON.stringify(["/bin/sh", "-c", args.map(quoted).join(" ")])}`;
}

const mark = "berth-step-";

/** Returns the number of the plan's step that a Dockerfile command runs; undefined for other commands. */
export function stepIn(vertexName: string): number | undefined {
  const [, number] = new RegExp(`: ${mark}(\\d+);`).exec(vertexName) ?? [];
  return number === undefined ? undefined : Number(number);
}

function runLine({ plan, certificates }: Generating, step: Step, number: number): string {
  const { pem } = certificateFiles;
  const java = plan.kind === "java" ? certificateFiles.java : null;
  const own = {
    ...toolEnv,
    PIP_ROOT_USER_ACTION: "ignore",
    ...(certificates ? certificateVariables({ pem, java }) : {}),
  };
  const assignments = (env: Readonly<Record<string, string>>) =>
    Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)};`);
  const script = [
    `: ${mark}${number};`,
    ...assignments({ ...stepEnv, CI: "true" }),
    `. /run/berth/env;`,
    ...assignments({ ...step.env, ...own }),
    `exec ${step.args.map(quoted).join(" ")}`,
  ].join(" ");
  const mounts = [
    `--mount=type=secret,id=${secretIds.env},target=/run/berth/env`,
    ...(certificates ? [`--mount=type=secret,id=${secretIds.certificates},target=${pem}`] : []),
    ...(certificates && java !== null ? [`--mount=type=secret,id=${secretIds.trustStore},target=${java}`] : []),
    "--mount=type=cache,target=/cache",
  ];
  return `RUN ${mounts.join(" ")} ${JSON.stringify(["/bin/sh", "-c", script])}`;
}
