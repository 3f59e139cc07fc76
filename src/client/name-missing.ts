import { ApiError, type AnyInput, type Client } from "../contract/client.ts";
import { errors } from "../contract/errors.ts";
import { route, type RouteName } from "../contract/routes.ts";
import { nameParameter, type Row } from "../contract/table.ts";
import { nearest } from "./nearest.ts";

/** Wraps a client so that its `not_found` errors name the missing thing and the probable name. `listed` says how to list a row's things. */
export function nameMissing(client: Client, listed: (row: RouteName) => string): Client {
  const send = (row: Row, input: AnyInput = {}) =>
    client.send(row, input).catch((fault: unknown) => rethrow({ client, listed }, fault, { row, input }));
  const call = (name: RouteName, input: AnyInput = {}) => send(route(name), input);
  const follow = async function* (name: RouteName, input: AnyInput = {}) {
    try {
      yield* client.follow(name, input as never);
    } catch (fault) {
      await rethrow({ client, listed }, fault, { row: route(name), input });
    }
  };
  return { ...client, send, call: call as Client["call"], follow: follow as Client["follow"] };
}

interface Lister {
  readonly client: Client;
  readonly listed: (row: RouteName) => string;
}

interface Call {
  readonly row: Row;
  readonly input: AnyInput;
}

interface Kind {
  readonly noun: string;
  readonly list: RouteName;
  /** Returns the names in the list's response; null if the list needs more than the path contains. */
  readonly names: ((document: ListAnswer) => readonly string[]) | null;
}

async function rethrow(lister: Lister, fault: unknown, call: Call): Promise<never> {
  // Other messages already name the missing thing.
  if (!(fault instanceof ApiError) || fault.message !== errors.not_found.meaning) throw fault;
  const named = await nameIn(lister.client, call).catch(() => undefined);
  if (named === undefined) throw fault;
  const { kind, name, candidates } = named;
  // Numbers that look alike have nothing in common.
  const meant = /^\d+$/.test(name) ? undefined : nearest(name, candidates);
  const error = `There is no ${kind.noun} ${JSON.stringify(name)}.`;
  const hint = meant === undefined ? lister.listed(kind.list) : `Did you mean \`${meant}\`?`;
  const headers = fault.requestId === null ? {} : { "x-request-id": fault.requestId };
  throw new ApiError(new Response(null, { status: fault.status, headers }), { ...fault.body, error, hint });
}

interface Named {
  readonly kind: Kind;
  readonly name: string;
  readonly candidates: readonly string[];
}

/** Finds the first name in the path that is missing from its list. */
async function nameIn(client: Client, { row, input: { params = {}, signal } }: Call): Promise<Named | undefined> {
  const own = nameParameter(row);
  for (const parameter of Object.keys(row.params.shape)) {
    const kind = parameter === own ? things[row.names ?? ""] : (parts[`${row.name} ${parameter}`] ?? parts[parameter]);
    const name = params[parameter];
    if (kind === undefined || name === undefined) continue;
    if (kind.names === null) return { kind, name, candidates: [] };
    const query = kind.list === "projects.list" ? { deleted: true } : {};
    const document = await client.send(route(kind.list), { params, query, signal });
    const candidates = kind.names(document as ListAnswer);
    if (!candidates.includes(name)) return { kind, name, candidates };
  }
  return undefined;
}

/** Returns the names of the things in a field of a list's response; `by` is their field with the name. */
const namesIn = (field: string, by: string) => (document: ListAnswer) =>
  (document[field] ?? []).map((each) => String(each[by]));

type ListAnswer = Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>;

/** Things that a path can name, by `Row.names`. */
const things: Readonly<Record<string, Kind>> = {
  project: { noun: "project", list: "projects.list", names: namesIn("projects", "slug") },
  organization: { noun: "organization", list: "orgs.list", names: namesIn("orgs", "slug") },
  build: { noun: "build", list: "builds.list", names: null },
  backup: { noun: "backup", list: "backups.list", names: null },
  token: { noun: "token", list: "tokens.list", names: null },
  member: { noun: "member", list: "people.list", names: null },
  invite: { noun: "invitation", list: "people.invites", names: null },
  key: { noun: "SSH key", list: "ssh-keys.list", names: null },
  approval: { noun: "approval", list: "approvals.list", names: null },
  registry: { noun: "registry", list: "registries.list", names: namesIn("registries", "host") },
};

/** Things within a project that a path can name, by parameter, or by row and parameter where rows differ. */
const parts: Readonly<Record<string, Kind>> = {
  name: { noun: "cron job", list: "cron.list", names: namesIn("jobs", "name") },
  hostname: { noun: "hostname", list: "domains.list", names: namesIn("domains", "hostname") },
  key: { noun: "variable", list: "env.list", names: namesIn("variables", "key") },
  "deployments.rehearsal number": {
    noun: "deployment",
    list: "deployments.list",
    names: namesIn("deployments", "number"),
  },
  number: { noun: "one-off command", list: "runs.list", names: namesIn("runs", "number") },
  table: { noun: "table", list: "data.tables", names: namesIn("tables", "name") },
  preview: {
    noun: "preview",
    list: "previews.list",
    names: ({ previews = [] }) => previews.flatMap(({ branch, slug }) => [String(branch), String(slug)]),
  },
  branch: { noun: "branch", list: "branches.list", names: namesIn("branches", "name") },
  database: { noun: "restored database", list: "backups.restored", names: namesIn("databases", "database") },
};
