import { limits } from "../../contract/limits.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Context } from "../context.ts";
import { compareIn } from "./compare-in.ts";
import { openVariables } from "./deployments.ts";
import { imageBytes } from "../images/images.ts";
import { shown } from "./queries.ts";
import { compareKeys } from "./rules.ts";

type CompareContext = Context<"deployments.compare"> | Context<"deployments.lines">;

interface Numbers {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

export async function compareDeployments(ctx: Context<"deployments.compare">, numbers: Numbers) {
  const pair = await selectPair(ctx, numbers);
  if (pair === undefined) return undefined;
  const { from, to } = pair;
  const { project_id } = ctx.project.key;
  const variablesOf = ({ id, sealed_variables }: ComparedRow) =>
    openVariables(ctx.platform.vault, { id, project_id, sealed_variables });
  return {
    from,
    to,
    files: await changedFiles(ctx, from.commit, to.commit),
    variables: compareKeys(variablesOf(from), variablesOf(to)),
    settings: (["port", "health_path"] as const)
      .filter((name) => from[name] !== to[name])
      .map((name) => ({ name, from: from[name], to: to[name] })),
  };
}

/** Compares the code of two deployments line by line. */
export async function compareLines(ctx: Context<"deployments.lines">, { path, build, ...numbers }: LinesOf) {
  const pair = build === undefined ? await selectPair(ctx, numbers) : await selectWithBuild(ctx, build, numbers.from);
  if (pair === undefined) return undefined;
  const [from, to] = [pair.from.commit, pair.to.commit];
  return compareIn(ctx.platform.ports.repositories, ctx.project.id, { from, to, path });
}

interface LinesOf extends Numbers {
  readonly path?: string | undefined;
  readonly build?: number | undefined;
}

async function selectPair({ tx, project }: CompareContext, { from: number, to: newer }: Numbers) {
  const { org_id, project_id } = project.key;
  const to = await selectCompared(tx, { org_id, project_id, number: newer });
  const from = to && (await selectCompared(tx, { org_id, project_id, number, servedBefore: to.number }));
  return from && { from, to };
}

async function selectWithBuild({ tx, project }: CompareContext, build: number, number: number | undefined) {
  const { org_id, project_id } = project.key;
  const to = await tx
    .selectFrom("build")
    .select("commit")
    .where("org_id", "=", org_id)
    .where("project_id", "=", project_id)
    .where("number", "=", build)
    .executeTakeFirst();
  // Each deployment that goes live, a rollback too, has a higher number than those before: the highest one serves.
  const from = to && (await selectCompared(tx, { org_id, project_id, number, servedBefore: afterAll }));
  return from && { from, to };
}

const afterAll = 2_147_483_647;

async function changedFiles(ctx: Context<"deployments.compare">, from: string, to: string): Promise<string[] | null> {
  if (from === to) return [];
  const { repositories } = ctx.platform.ports;
  const between = (a: string, b: string) =>
    repositories.changedPaths(ctx.project.id, { from: a, to: b, quarantine: null }, limits.files_listed);
  // Comparing a commit with itself returns null if the commit no longer exists; git would refuse to compare with it.
  if ((await between(to, to)) === null) return null;
  const paths = await between(from, to);
  return paths === null ? null : [...paths];
}

type ComparedRow = NonNullable<Awaited<ReturnType<typeof selectCompared>>>;

interface Wanted {
  readonly org_id: string;
  readonly project_id: string;
  /** Undefined: the newest deployment, or the newest before `servedBefore` that went live. */
  readonly number: number | undefined;
  readonly servedBefore?: number;
}

async function selectCompared(db: Db | Tx, { org_id, project_id, number, servedBefore }: Wanted) {
  let query = db
    .selectFrom("deployment as d")
    .innerJoin("build as b", "b.id", "d.build_id")
    .select(shown.map((name) => `d.${name}` as const))
    .select(["d.port", "d.health_path", "d.sealed_variables", "b.message", imageBytes("d")])
    .where("d.org_id", "=", org_id)
    .where("d.project_id", "=", project_id)
    .$if(number === undefined, (all) => all.where("d.rehearse_only", "=", false));
  if (number !== undefined) query = query.where("d.number", "=", number);
  else if (servedBefore !== undefined)
    query = query.where("d.number", "<", servedBefore).where("d.activated_at", "is not", null);
  return query.orderBy("d.number", "desc").limit(1).executeTakeFirst();
}
