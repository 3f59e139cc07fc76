import { refusal, scopes, type Role, type Scope } from "./access.ts";
import { rows as activity } from "./activity.ts";
import { rows as alerts } from "./alerts.ts";
import { rows as approvals } from "./approvals.ts";
import { rows as backups } from "./backups.ts";
import { rows as branches } from "./branches.ts";
import { rows as builds } from "./builds.ts";
import { rows as cron } from "./cron.ts";
import { rows as data } from "./data.ts";
import { rows as database } from "./database.ts";
import { rows as deployments } from "./deployments.ts";
import { rows as diagnosis } from "./diagnosis.ts";
import { rows as disk } from "./disk.ts";
import { rows as domains } from "./domains.ts";
import { rows as env } from "./env.ts";
import { rows as follow } from "./follow.ts";
import { rows as logs } from "./logs.ts";
import { rows as requests } from "./requests.ts";
import { rows as me } from "./me.ts";
import { rows as people } from "./people.ts";
import { rows as metrics } from "./metrics.ts";
import { rows as orgs } from "./orgs.ts";
import { rows as overview } from "./overview.ts";
import { rows as platform } from "./platform.ts";
import { rows as previews } from "./previews.ts";
import { rows as processes } from "./processes.ts";
import { rows as projects } from "./projects.ts";
import { rows as providers } from "./providers.ts";
import { rows as registries } from "./registries.ts";
import { rows as runs } from "./runs.ts";
import { rows as selfDescription } from "./self-description.ts";
import { rows as sshKeys } from "./ssh-keys.ts";
import { rows as templates } from "./templates.ts";
import { rows as timeline } from "./timeline.ts";
import { rows as status } from "./status.ts";
import { rows as tokens } from "./tokens.ts";
import { rows as webhooks } from "./webhooks.ts";
import type { Row } from "./table.ts";
import type { z } from "zod";

/** Every route of the API, in the order of the specification. */
export const routes = [
  ...selfDescription,
  ...me,
  ...projects,
  ...templates,
  ...deployments,
  ...previews,
  ...processes,
  ...registries,
  ...runs,
  ...builds,
  ...follow,
  ...env,
  ...domains,
  ...cron,
  ...database,
  ...branches,
  ...data,
  ...backups,
  ...disk,
  ...metrics,
  ...timeline,
  ...diagnosis,
  ...logs,
  ...requests,
  ...tokens,
  ...people,
  ...providers,
  ...sshKeys,
  ...webhooks,
  ...overview,
  ...activity,
  ...orgs,
  ...approvals,
  ...status,
  ...alerts,
  ...platform,
] as const satisfies readonly Row[];

export type Routes = (typeof routes)[number];
export type RouteName = Routes["name"];
export type RouteNamed<N extends RouteName> = Extract<Routes, { name: N }>;

/** The parsed path parameters that a handler receives. */
export type Params<N extends RouteName> = z.output<RouteNamed<N>["params"]>;
export type Query<N extends RouteName> = z.output<RouteNamed<N>["query"]>;
export type Body<N extends RouteName> = RouteNamed<N>["upload"] extends string
  ? AsyncIterable<Uint8Array>
  : RouteNamed<N>["body"] extends z.ZodType
    ? z.output<RouteNamed<N>["body"]>
    : undefined;
/** What a handler returns. Undeclared fields are stripped. */
export type Result<N extends RouteName> = RouteNamed<N>["result"] extends z.ZodType
  ? z.input<RouteNamed<N>["result"]>
  : undefined;

const byName = new Map<string, Row>(routes.map((route) => [route.name, route]));

export function route(name: RouteName): Row {
  return byName.get(name) as Row;
}

/** Returns the scopes of all rows that a role may call: the default scopes of a token with this role. */
export function scopesOf(role: Role): readonly Scope[] {
  const rights = { role, platform_admin: false, scopes, project_ids: null };
  const asked = (routes as readonly Row[]).filter((each) => refusal(rights, each) === undefined);
  return scopes.filter((scope) => asked.some((each) => each.scope === scope || each.further_scopes.includes(scope)));
}
