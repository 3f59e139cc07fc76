import { isSystemVariable } from "../../contract/env.ts";
import type { Plan } from "../../contract/builds.ts";
import type { Builder, PlannedBuild } from "../../ports/builder.ts";
import type { Failure } from "../../ports/failure.ts";
import type { Quarantine, Repositories } from "../../ports/repositories.ts";
import type { Db, Tx } from "../../store/database.ts";
import { aheadOf } from "./ahead.ts";
import { planCrons } from "../cron/cron.ts";
import { hasDatabaseAddress } from "../branches/branches.ts";
import { variableNames } from "../env/env.ts";
import type { ProjectKey } from "../projects/projects.ts";
import { readSourceSettings, type ReadSettings } from "./read-source-settings.ts";
import { namesInExample, watchedPatterns } from "./rules.ts";
import { buildCommandsOf, invalidFile, missingFolder, overruled } from "./source-settings.ts";
import { watchedButUntouched } from "./watched.ts";
import { sql } from "kysely";

export interface Planning {
  readonly db: Db;
  readonly repositories: Repositories;
  readonly builder: Pick<Builder, "plan" | "images">;
}

export interface PlannedSource extends ProjectKey {
  readonly commit: string;
  readonly branch: string;
  readonly quarantine: Quarantine | null;
  /** The commit only holds uploaded files temporarily; it is not part of the repository. */
  readonly isDraft: boolean;
  readonly signal: AbortSignal;
}

type Project = Awaited<ReturnType<typeof plannedProject>>;

/** Returns what a deploy of the commit would do. Changes no branch and stores nothing. */
export async function planSource(planning: Planning, source: PlannedSource): Promise<Plan> {
  const { db, repositories } = planning;
  const project = await plannedProject(db, source);
  const read = await readSourceSettings(repositories, { ...source, root: project.root });
  const plan = emptyPlan(source, project);
  if (read.outcome === "invalid") return failed(plan, invalidFile(read.problems));
  const { file, root, folder, path } = read;
  const known: Plan = {
    ...plan,
    root,
    berth_file: file === null ? null : path,
    overruled: overruled(project, file ?? {}),
    watch: watchedPatterns(project.watch, file, folder),
    port: project.port ?? file?.port ?? null,
    health_path: project.health_path ?? file?.health_path ?? null,
    crons: [...(await planCrons(db, source, file?.crons ?? []))],
    ahead: await aheadOf(planning, source, source),
    missing_variables: await missingVariables(planning, source, root),
  };
  if (root !== "" && !(await hasFolder(planning, source, root))) return failed(known, missingFolder(root));
  const decided = await planBuild(planning, source, { project, read });
  if ("stage" in decided) return failed(known, decided);
  const untouched = await watchedButUntouched(planning, source, { ...project, ...source });
  const processes = processesOf(decided, project, await processSettings(db, source));
  return {
    ...known,
    outcome: untouched === null ? "deploys" : "nothing_to_deploy",
    build: { ...buildOf(decided), earlier_build: await imageOf(planning, source) },
    processes,
    processes_ended: project.types.filter((type) => !processes.some((each) => each.type === type)),
    release_command: decided.release_command,
  };
}

function emptyPlan({ commit, branch, isDraft }: PlannedSource, project: Project): Plan {
  return {
    ...{ outcome: "fails", commit: isDraft ? null : commit, branch, root: project.root ?? "", berth_file: null },
    ...{ overruled: [], watch: null, failure: null, build: null, processes: [], processes_ended: [] },
    ...{ release_command: null, port: project.port, health_path: project.health_path, crons: [] },
    ...{ ahead: null, missing_variables: [] },
  };
}

const failed = (plan: Plan, failure: Failure): Plan => ({ ...plan, outcome: "fails", failure });

async function hasFolder({ repositories }: Planning, source: PlannedSource, root: string): Promise<boolean> {
  const { project_id, commit, quarantine } = source;
  return (await repositories.files(project_id, commit, 1, { folder: `${root}/`, quarantine })).length > 0;
}

interface Decided {
  readonly project: Project;
  readonly read: ReadSettings;
}

async function planBuild(
  { builder, repositories }: Planning,
  { org_id, project_id, commit, quarantine, signal }: PlannedSource,
  { project, read }: Decided,
): Promise<PlannedBuild | Failure> {
  const planned = await builder.plan({
    ...{ org_id, project_id, signal, commands: buildCommandsOf(project, read) },
    ...(project.runtime === null ? {} : { runtime: project.runtime }),
    source: () => repositories.archive(project_id, commit, { folder: read.folder, quarantine }),
  });
  switch (planned.outcome) {
    case "planned":
      return planned.plan;
    case "refused":
      return planned.failure;
    case "cancelled":
      return abandoned;
  }
}

/** The failure of a plan whose client has disconnected. */
const abandoned: Failure = {
  stage: "receive",
  code: "cancelled",
  summary: "The plan was cancelled.",
  hint: "Request it again.",
  log_tail: [],
};

function buildOf({ kind, name, uses_dockerfile, tools, notes, steps }: PlannedBuild) {
  return { kind, name, uses_dockerfile, tools: [...tools], notes: [...notes], steps: [...steps] };
}

function processesOf(
  { web, processes }: PlannedBuild,
  { replicas }: Project,
  settings: Awaited<ReturnType<typeof processSettings>>,
): Plan["processes"] {
  const others = Object.entries(processes).map(([type, command]) => {
    const set = settings.find(({ process }) => process === type);
    return { type, command, because: null, replicas: set?.replicas ?? 1, overlap: set?.overlap ?? false };
  });
  return web === null ? others : [{ type: "web", ...web, replicas, overlap: true }, ...others];
}

/** Returns the build of the same commit whose image still exists. */
async function imageOf({ db, builder }: Planning, source: PlannedSource) {
  if (source.isDraft) return null;
  const found = await earlierBuild(db, source, source.commit);
  if (found === undefined) return null;
  return (await builder.images(source.project_id)).includes(found.image_ref) ? found : null;
}

const exampleBytes = 64 * 1024;

async function missingVariables({ db, repositories }: Planning, source: PlannedSource, root: string) {
  const { org_id, project_id, commit, quarantine } = source;
  const path = root === "" ? ".env.example" : `${root}/.env.example`;
  const example = await repositories.read(project_id, commit, { path, maxBytes: exampleBytes, quarantine });
  if (example === null) return [];
  const own = await variableNames(db, source);
  const hasDatabase = await hasDatabaseAddress(db, { org_id, project_id });
  const isSet = (name: string) =>
    own.includes(name) || (/^(?:DATABASE_URL|PG[A-Z]+)$/.test(name) ? hasDatabase : isSystemVariable(name));
  return namesInExample(example.toString()).filter((name) => !isSet(name));
}

async function plannedProject(db: Db | Tx, { org_id, project_id }: ProjectKey) {
  return db
    .selectFrom("project")
    .leftJoin("deployment", (on) =>
      on.onRef("deployment.project_id", "=", "project.id").on("deployment.status", "=", "active"),
    )
    .select([
      ...(["project.root", "project.watch", "project.port", "project.health_path", "project.replicas"] as const),
      sql<string | null>`deployment.image ->> 'runtime'`.as("runtime"),
      sql<
        string[]
      >`coalesce((select array_agg(t.process) from deployment_process t where t.deployment_id = deployment.id), '{}')`.as(
        "types",
      ),
    ])
    .where(({ and }) => and({ "project.org_id": org_id, "project.id": project_id }))
    .executeTakeFirstOrThrow();
}

async function processSettings(db: Db | Tx, { org_id, project_id }: ProjectKey) {
  return db
    .selectFrom("process_setting")
    .select(["process", "replicas", "overlap"])
    .where(({ and }) => and({ org_id, project_id }))
    .execute();
}

/** Returns the newest succeeded build of a commit that has an image. */
async function earlierBuild(db: Db | Tx, { org_id, project_id }: ProjectKey, commit: string) {
  return db
    .selectFrom("build")
    .select(["number", "image_ref"])
    .where(({ and }) => and({ org_id, project_id, commit, status: "succeeded" }))
    .where("image_ref", "is not", null)
    .orderBy("number", "desc")
    .limit(1)
    .$narrowType<{ image_ref: string }>()
    .executeTakeFirst();
}
