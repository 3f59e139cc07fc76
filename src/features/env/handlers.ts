import { isSystemVariable, mask } from "../../contract/env.ts";
import { readEnvFile } from "../../contract/env-file.ts";
import type { Context, Handlers } from "../context.ts";
import { hasDatabaseAddress } from "../branches/branches.ts";
import { requireMayDeploy } from "../builds/builds.ts";
import { variablesOfDeployment } from "../deployments/deployments.ts";
import { lockProject, type ProjectKey } from "../projects/projects.ts";
import { markVariablesChanged, sealVariables } from "./env.ts";
import { deleteVariable, selectVariables, upsertVariable } from "./queries.ts";
import { fits, secretName, systemKeys } from "./rules.ts";

export const env: Handlers<"env"> = {
  async list(ctx) {
    const { key: project } = ctx.project;
    const own = await selectVariables(ctx.tx, project);
    const isPreview = ctx.project.preview_of !== null;
    const system = systemKeys(await hasDatabaseAddress(ctx.tx, project), isPreview).map((key) => ({
      key,
      updated_at: null,
      system: true,
    }));
    const variables = [...own.map(({ key, updated_at }) => ({ key, updated_at, system: false })), ...system];
    return { variables: variables.map((variable) => ({ ...variable, value: mask })) };
  },

  async set(ctx, { params, body }) {
    const { key } = params;
    // An earlier value, too: an agent may have set it, and a person may have taken it away since.
    requireMayDeploy(ctx, agentsPreview);
    const project = await lockChangeable(ctx, [key]);
    const value = body.value ?? (await valueOfDeployment(ctx, key, body.from_deployment ?? 0));
    await store(ctx, project, { [key]: value });
    return undefined;
  },

  async import(ctx, { body }) {
    requireMayDeploy(ctx, agentsPreview);
    const lines = readEnvFile(body.file ?? "");
    const given = body.variables ?? Object.fromEntries(lines.map(({ key, value }) => [key ?? "", value] as const));
    const project = await lockChangeable(ctx, Object.keys(given));
    const changed = await store(ctx, project, given);
    return { changed, unchanged: Object.keys(given).filter((key) => !changed.includes(key)) };
  },

  async delete(ctx, { params }) {
    const project = await lockChangeable(ctx, [params.key]);
    if (!(await deleteVariable(ctx.tx, project, params.key))) return ctx.fail("not_found");
    return announce(ctx, project, params.key);
  },
};

/** A variable such as NODE_OPTIONS runs code in what serves, and its value is not shown to the person who would approve it. */
const agentsPreview = {
  error: "In this project, tokens in approval mode set the variables of previews only.",
  hint: "Set it in the preview (`berth env set KEY=VALUE -p <preview>`), and ask a person to set it in the project.",
};

type StoreContext = Context<"env.set"> | Context<"env.import">;
type ChangeContext = StoreContext | Context<"env.delete">;

async function lockChangeable(ctx: ChangeContext, keys: readonly string[]): Promise<ProjectKey> {
  const system = keys.filter(isSystemVariable);
  if (system.length > 0)
    return ctx.fail("system_variable", { error: `The platform sets ${system.join(", ")} itself.` });
  await lockProject(ctx.tx, ctx.project.key);
  return ctx.project.key;
}

/** Stores the variables whose value differs, and returns their names. */
async function store(
  ctx: StoreContext,
  project: ProjectKey,
  given: Readonly<Record<string, string>>,
): Promise<string[]> {
  const stored = await selectVariables(ctx.tx, project);
  const sealed = sealVariables(ctx.platform.vault, project.project_id, given);
  if (!fits(stored, sealed)) return ctx.fail("variables_too_large");
  const { vault } = ctx.platform;
  const isSame = (key: string) => {
    const old = stored.find((each) => each.key === key);
    return old !== undefined && vault.open(project.project_id, secretName(key), old.sealed_value) === given[key];
  };
  const changed = sealed.filter(({ key }) => !isSame(key));
  ctx.note({ silent: changed.length === 0 });
  for (const variable of changed) await upsertVariable(ctx.tx, { ...project, ...variable });
  const keys = changed.map(({ key }) => key);
  if (keys.length > 0) await announce(ctx, project, keys.join(", "));
  return keys;
}

/** Returns the value that a variable had in a deployment. No response contains it. */
async function valueOfDeployment(ctx: Context<"env.set">, key: string, number: number): Promise<string> {
  const variables = await variablesOfDeployment(ctx.platform.vault, ctx.tx, ctx.project.key, number);
  if (variables === undefined) return ctx.fail("not_found", { error: `There is no deployment ${number}.` });
  return variables[key] ?? ctx.fail("not_found", { error: `Deployment ${number} has no variable ${key}.` });
}

async function announce(ctx: ChangeContext, project: ProjectKey, target: string): Promise<undefined> {
  ctx.note({ target });
  await markVariablesChanged(ctx.platform.wakeups, ctx.tx, project);
  return undefined;
}
