import { isSystemVariable, mask } from "../../contract/env.ts";
import type { Context, Handlers } from "../context.ts";
import { databaseOf } from "../database/database.ts";
import { variablesOfDeployment } from "../deployments/deployments.ts";
import { lockProject, type ProjectKey } from "../projects/projects.ts";
import { markVariablesChanged } from "./env.ts";
import { deleteVariable, selectVariables, upsertVariable } from "./queries.ts";
import { fits, secretName, sizeOf, systemKeys } from "./rules.ts";

export const env: Handlers<"env"> = {
  async list(ctx) {
    const { key: project } = ctx.project;
    const own = await selectVariables(ctx.tx, project);
    const database = await databaseOf(ctx.tx, project.org_id, project.project_id);
    const system = systemKeys(database !== undefined).map((key) => ({ key, updated_at: null, system: true }));
    const variables = [...own.map(({ key, updated_at }) => ({ key, updated_at, system: false })), ...system];
    return { variables: variables.map((variable) => ({ ...variable, value: mask })) };
  },

  async set(ctx, { params, body }) {
    const { key } = params;
    const project = await lockChangeable(ctx, params.key);
    const others = await selectVariables(ctx.tx, project);
    const value = body.value ?? (await valueOfDeployment(ctx, key, body.from_deployment ?? 0));
    const size_bytes = sizeOf(key, value);
    if (!fits(others, key, size_bytes)) return ctx.fail("variables_too_large");
    const { vault } = ctx.platform;
    const old = others.find((other) => other.key === key);
    const same = old !== undefined && vault.open(project.project_id, secretName(key), old.sealed_value) === value;
    ctx.note({ silent: same });
    if (same) return undefined;
    await upsertVariable(ctx.tx, {
      ...project,
      key,
      size_bytes,
      sealed_value: vault.seal(project.project_id, secretName(key), value),
    });
    return announce(ctx, project, key);
  },

  async delete(ctx, { params }) {
    const project = await lockChangeable(ctx, params.key);
    if (!(await deleteVariable(ctx.tx, project, params.key))) return ctx.fail("not_found");
    return announce(ctx, project, params.key);
  },
};

type ChangeContext = Context<"env.set"> | Context<"env.delete">;

async function lockChangeable(ctx: ChangeContext, key: string): Promise<ProjectKey> {
  if (isSystemVariable(key)) return ctx.fail("system_variable", { error: `The platform sets ${key} itself.` });
  await lockProject(ctx.tx, ctx.project.key);
  return ctx.project.key;
}

/** Returns the value that a variable had in a deployment. No response contains it. */
async function valueOfDeployment(ctx: Context<"env.set">, key: string, number: number): Promise<string> {
  const variables = await variablesOfDeployment(ctx.platform.vault, ctx.tx, ctx.project.key, number);
  if (variables === undefined) return ctx.fail("not_found", { error: `There is no deployment ${number}.` });
  return variables[key] ?? ctx.fail("not_found", { error: `Deployment ${number} has no variable ${key}.` });
}

async function announce(ctx: ChangeContext, project: ProjectKey, key: string): Promise<undefined> {
  ctx.note({ target: key });
  await markVariablesChanged(ctx.platform.wakeups, ctx.tx, project);
  return undefined;
}
