import { limits } from "./limits.ts";
import { z } from "zod";
import { id, idCursor, pageQuery, nextCursor, ofProject, timestamp, row } from "./table.ts";
import { buildStates, deploymentStates, statesOf } from "./states.ts";

/** The kinds of git hosts whose webhooks and commit statuses are supported. */
export const followProviders = ["github", "gitlab", "gitea", "other"] as const;
export type FollowProvider = (typeof followProviders)[number];

const repository = z
  .string()
  .max(2048)
  .transform((text, context) => {
    const url = repositoryUrl(text);
    if (url !== null) return url;
    const message =
      "use https://host/owner/name.git, ssh://git@host/owner/name.git or git@host:owner/name.git, without a password";
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  });

/** Returns the canonical URL of a repository, or null when the text is not one. `git@host:path` is the short form of SSH. */
export function repositoryUrl(text: string): string | null {
  const short = /^([\w.-]+)@([\w.-]+):(?!\d+\/)([^/].*)$/.exec(text);
  const url = URL.parse(short === null ? text : `ssh://${short[1]}@${short[2]}/${short[3]}`);
  if (url?.password !== "" || url.search !== "" || url.hash !== "") return null;
  if (!/^[\w.:[\]-]+$/.test(url.host) || !/^\/[\w.~%+@/-]*[\w~-]\/?$/.test(url.pathname)) return null;
  if (url.protocol === "https:") return url.username === "" ? url.href : null;
  if (url.protocol !== "ssh:" || !/^[\w.-]*$/.test(url.username)) return null;
  if (url.username === "") url.username = "git";
  return url.href;
}

// git-check-ref-format(1)
const branch = z
  .string()
  .min(1)
  .max(250)
  .regex(
    /^(?![-./])(?!.*(?:\.\.|\/\/|\/\.|@\{|\.lock(?:\/|$)))[^\s~^:?*[\\\u0000-\u001f\u007f-\u009f]+(?<![./])$/,
    "is not a valid branch name",
  );

const follow = z.object({
  url: z.string(),
  branch: z.string(),
  provider: z.enum(followProviders),
  /** For SSH: the deploy key that the git host must accept for reading. */
  public_key: z.string().nullable(),
  /** For SSH: the fingerprint of the host key, either configured or remembered from the first fetch. */
  host_key: z.string().nullable(),
  has_token: z.boolean(),
  /** The URL to which the repository's webhook must send pushes. */
  hook_url: z.string(),
  /** The newest commit that was fetched; null before the first fetch. */
  commit: z.string().nullable(),
  fetched_at: timestamp.nullable(),
  /** Why the last fetch failed; null when it succeeded. */
  problem: z.string().nullable(),
  /** Why the last commit status could not be set; null when it was set, or none was due. */
  status_problem: z.string().nullable(),
  /** When the branch is polled next, if no webhook arrives before. */
  next_fetch_at: timestamp,
  created_at: timestamp,
  updated_at: timestamp,
});

const delivery = z.object({
  id,
  /** `poll`: the platform found a new commit by polling. */
  source: z.enum(["hook", "manual", "poll"]),
  event: z.string(),
  /** The branch whose preview it is for; null: it is for the followed branch. */
  branch: z.string().nullable(),
  /** `deployed`: a build was queued; see `build`. */
  status: z.enum(["waiting", "deployed", "ignored"]),
  /** Why it was ignored, or what it waits for. */
  reason: z.string().nullable(),
  commit: z.string().nullable(),
  build: z
    .object({
      id,
      number: z.number().int(),
      status: z.enum(statesOf(buildStates)),
      deployment: z.object({ number: z.number().int(), status: z.enum(statesOf(deploymentStates)) }).nullable(),
    })
    .nullable(),
  received_at: timestamp,
  finished_at: timestamp.nullable(),
});

/** False: what is fetched is only stored, so that `builds.plan` can show its plan. The next new commit is deployed. */
const deploy = z.boolean().default(true);

export const rows = [
  row({
    ...ofProject,
    name: "follow.set",
    request: "PUT /v1/projects/:slug/follow",
    may: "owner projects:write",
    further_scopes: ["deployments:write"],
    approval: true,
    body: z.strictObject({
      url: repository,
      branch: branch.default("main"),
      /** Defaults to the provider detected from the hostname. */
      provider: z.enum(followProviders).optional(),
      /** Reads a private repository over HTTPS and sets commit statuses. Null removes it; absent keeps it. */
      token: z
        .string()
        .regex(/^[\x21-\x7e]{1,1024}$/, "must be a token without spaces")
        .nullable()
        .optional()
        .meta({ writeOnly: true }),
      /** For SSH: the fingerprint or public key that the host must present. Null accepts and remembers the next key that it presents. */
      host_key: z.string().max(4000).nullable().optional(),
      deploy,
    }),
    result: follow.extend({
      /** Signs webhook deliveries. Shown only once; null when it already existed. */
      secret: z.string().nullable(),
    }),
    secret: "secret",
    errors: ["forbidden", "conflict"],
    activity: "follow.set",
    summary:
      "Follow a branch of a repository on GitHub, GitLab, Gitea or another git server: from now on each new commit is deployed",
  }),
  row({
    ...ofProject,
    name: "follow.get",
    request: "GET /v1/projects/:slug/follow",
    may: "member projects:read",
    result: follow,
    summary: "Show which branch the project follows, its deploy key and the result of the last fetch",
  }),
  row({
    ...ofProject,
    name: "follow.delete",
    request: "DELETE /v1/projects/:slug/follow",
    may: "owner projects:write",
    approval: true,
    activity: "follow.deleted",
    summary: "Stop following; deploy key, token, secret and deliveries are deleted, the live deployment stays",
  }),
  row({
    ...ofProject,
    name: "follow.fetch",
    request: "POST /v1/projects/:slug/follow/fetch",
    may: "member deployments:write",
    body: z.strictObject({ deploy }),
    result: delivery,
    success: [201],
    errors: ["rate_limited", "forbidden"],
    activity: "follow.fetched",
    summary: "Fetch the branch now and deploy its latest commit, even if an earlier deploy of that commit failed",
  }),
  row({
    ...ofProject,
    name: "follow.deliveries",
    request: "GET /v1/projects/:slug/follow/deliveries",
    may: "member deployments:read",
    query: z.object(pageQuery(idCursor, limits.follow_deliveries_listed)),
    result: z.object({ deliveries: z.array(delivery), next_cursor: nextCursor }),
    summary: "List the triggers of fetches in the last 14 days and their results, newest first, 50 at a time",
  }),
] as const;
