import type { Scope } from "../contract/access.ts";
import { receivePush, type Receiving } from "../features/builds/builds.ts";
import { findProject } from "../features/projects/projects.ts";
import { keysByFingerprint } from "../features/ssh-keys/ssh-keys.ts";
import { authenticate, recordUse } from "../features/tokens/tokens.ts";
import type { GitAccess, GitCaller, GitGate, GitPath, GitProject, ProjectLookup, PushRequest } from "../git/gate.ts";
import type { Db } from "../store/database.ts";
import { StartRefused } from "./config.ts";

/** The scope that each git access requires of a token, or of the token that registered the SSH key. */
const scopeOf: Record<GitAccess, Scope> = { read: "projects:read", write: "deployments:write" };

const unisolated =
  "This machine cannot isolate applications, so it runs the code of its first organization only. Ask its operator to set up isolation.";

interface Known extends GitCaller {
  readonly scopes: readonly Scope[];
  readonly project_ids: readonly string[] | null;
  /** The token, or the one that registered the key. */
  readonly token_id: string | null;
}

/** Connects git's transport to the features: authenticates callers, finds the projects they may access, and turns pushes into builds. */
export function createGitGate(receiving: Receiving & { readonly admits: CodeAdmission }): GitGate {
  const { db } = receiving;
  const builds = new WeakMap<PushRequest, { id: string; branch: string }>();
  return {
    async authenticateKey(fingerprint) {
      const owners = await keysByFingerprint(db, fingerprint);
      return owners
        .filter((owner) => !owner.suspended)
        .map((owner): Known => ({
          kind: "key",
          id: owner.id,
          name: owner.name,
          organization_id: owner.org_id,
          organization_slug: owner.org_slug,
          ...rightsOf(owner),
        }));
    },
    async authenticateToken(token) {
      const known = await authenticate(db, token);
      if (known === undefined || known.suspended) return null;
      const { caller } = known;
      // Not awaited: a late or lost record does no harm.
      recordUse(db, caller.token_id).catch(() => {});
      const found: Known = {
        kind: "token",
        id: caller.token_id,
        name: caller.token_name,
        organization_id: caller.org_id,
        organization_slug: caller.org_slug,
        ...rightsOf(caller),
      };
      return found;
    },
    async findProject(caller, path, access) {
      const { kind, token_id } = caller as Known;
      // A key lives as long as the token that registered it, which counts as used with it.
      if (kind === "key" && token_id !== null) recordUse(db, token_id).catch(() => {});
      const found = await lookUp(receiving, caller as Known, path, access);
      if (found.outcome !== "found" || access === "read") return found;
      return receiving.admits({ slug: caller.organization_slug }) ? found : { outcome: "refused", reason: unisolated };
    },
    async receive(push, onLine) {
      const { project, caller, refs, quarantine, signal } = push;
      if (project.called !== undefined) for (const line of renamed(project, project.called)) onLine(line);
      const owner = { org_id: project.organization_id, project_id: project.id };
      const asked = { actor: caller.name, mayRewrite: caller.may_rewrite, copies_data: !caller.may_rewrite };
      const token = { token_id: (caller as Known).token_id };
      const wanted = { ...owner, ...asked, ...token, refs, quarantine, signal, isPlan: push.wants === "plan" };
      const verdict = await receivePush(receiving, wanted, onLine);
      if (!verdict.accepted) return { accepted: false };
      if (verdict.build === null) return { accepted: true };
      builds.set(push, verdict.build);
      return { accepted: true, head: verdict.build.branch };
    },
    async completed(push) {
      const build = builds.get(push);
      if (build !== undefined) await settle(receiving, push, build);
    },
  };
}

function rightsOf({
  approval_mode,
  scopes,
  project_ids,
  token_id,
}: Omit<Known, keyof GitCaller> & { approval_mode: boolean }) {
  return { may_rewrite: !approval_mode, scopes, project_ids, token_id };
}

async function lookUp(
  { db, dataDisk }: Receiving,
  caller: Known,
  path: GitPath,
  access: GitAccess,
): Promise<ProjectLookup> {
  if (path.organization_slug !== caller.organization_slug) return { outcome: "missing" };
  const project = await findProject(db, caller.organization_id, path.project_slug);
  if (project === undefined || caller.project_ids?.includes(project.id) === false) return { outcome: "missing" };
  if (project.deleted_at !== null)
    return {
      outcome: "refused",
      reason: `The project is deleted. Bring it back with: berth projects undelete ${project.slug}`,
    };
  if (!caller.scopes.includes(scopeOf[access])) {
    const who = caller.kind === "key" ? "The token that registered this key" : "The token";
    return { outcome: "refused", reason: `${who} lacks the scope ${scopeOf[access]}.` };
  }
  // git stores a push before its hook runs, so a push to a full disk must be refused here.
  if (access === "write" && (await dataDisk.observe()).is_full)
    return {
      outcome: "unavailable",
      reason: "The platform's disk is full (storage_full). Its operator has to free space.",
    };
  const { id, slug, deploy_branch } = project;
  const called = slug === path.project_slug ? {} : { called: path.project_slug };
  return { outcome: "found", project: { id, slug, deploy_branch, organization_id: caller.organization_id, ...called } };
}

function renamed({ slug }: GitProject, called: string): string[] {
  return [
    `-----> The project ${called} was renamed to ${slug}`,
    `       Replace ${called}.git with ${slug}.git in the remote's URL: git remote set-url berth <URL>`,
  ];
}

/** Moves the branch if git ended before it could: the next push must build on what serves. One moved by another push stays. */
async function settle({ repositories }: Receiving, push: PushRequest, build: { id: string; branch: string }) {
  const ref = `refs/heads/${build.branch}`;
  const pushed = push.refs.find((each) => each.name === ref);
  const commit = pushed?.new ?? null;
  if (pushed === undefined || commit === null) return;
  const now = await repositories.resolve(push.project.id, ref);
  const isMoved =
    now === commit || (now === pushed.old && (await repositories.moveRef(push.project.id, ref, now, commit)));
  if (isMoved) await repositories.unpin(push.project.id, build.id);
}

/** Whether this machine may run the code of an organization. */
export type CodeAdmission = (organization: { readonly slug: string }) => boolean;

/** Returns whose code may run. Without namespaces an application may read others' data, so only the first organization's. */
export function admitCode(isolation: readonly string[], allowUnisolated: boolean): CodeAdmission {
  const isForAll = allowUnisolated || isolation.includes("namespaces");
  return ({ slug }) => isForAll || slug === "main";
}

/** Throws `StartRefused` if this machine lacks isolation and an organization whose code is not admitted has a build here. */
export async function requireAdmittedCode(db: Db, admits: CodeAdmission): Promise<void> {
  const organizations = await db
    .selectFrom("organization")
    .select("slug")
    .where((of) =>
      of.exists(of.selectFrom("build").whereRef("build.org_id", "=", "organization.id").select("build.id")),
    )
    .execute();
  const refused = organizations.filter((organization) => !admits(organization)).map(({ slug }) => slug);
  if (refused.length === 0) return;
  throw new StartRefused(
    `This machine has no namespaces to isolate code, but it holds code of more than one organization (${refused.join(", ")}). ` +
      "Allow user namespaces (docs/isolation.md), or set BERTH_ALLOW_UNISOLATED=1 to run it without isolation.",
  );
}
