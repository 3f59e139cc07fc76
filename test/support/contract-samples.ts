import type { Plan } from "../../src/contract/builds.ts";
import type { Health } from "../../src/contract/health.ts";
import type { Result } from "../../src/contract/routes.ts";

const at = "2026-01-02T03:04:05.678Z";
const hash = "0123456789abcdef0123456789abcdef01234567";

type Build = Result<"builds.get">;
type Deployment = Result<"deployments.list">["deployments"][number];

/** A project as the API shows it. */
export function sampleProject(more: Partial<Result<"projects.get">> = {}): Result<"projects.get"> {
  return {
    id: "prj_1",
    slug: "demo",
    name: "Demo",
    state: "active",
    port: null,
    root: null,
    watch: null,
    health_path: null,
    start_seconds: null,
    sleep_after_minutes: null,
    storage: true,
    replicas: 1,
    maintenance: null,
    follows: false,
    previews: null,
    preview_variables: null,
    preview_data: "empty",
    agents: "deploy",
    preview: null,
    ahead: null,
    earlier_names: [],
    url: "http://demo.localhost:8080",
    git: { ssh: "ssh://git@127.0.0.1:2222/main/demo.git", https: "http://127.0.0.1:4000/git/main/demo.git" },
    created_at: at,
    updated_at: at,
    deleted_at: null,
    active_deployment: null,
    health: sampleHealth(),
    ...more,
  };
}

/** The health of a project without a deployment. */
export function sampleHealth(more: Partial<Health> = {}): Health {
  const next = { advice: "Push the code.", call: null };
  const empty = { state: "empty", code: "nothing_deployed", sentence: "Nothing is deployed yet.", next } as const;
  return { ...empty, since: null, seen: {}, rollback: null, ...more };
}

/** A build that succeeded. */
export function sampleBuild(more: Partial<Build> = {}): Build {
  const times = { created_at: at, started_at: at, finished_at: at };
  return {
    id: "bld_1",
    number: 1,
    status: "succeeded",
    commit: hash,
    branch: "main",
    message: "First",
    author: "Ada Lovelace",
    requested_by: "laptop",
    image_ref: "sha256:1",
    ...times,
    failure: null,
    rehearse_only: false,
    deployment: null,
    ...more,
  };
}

/** The active deployment of that build. */
export function sampleDeployment(more: Partial<Deployment> = {}): Deployment {
  const times = { created_at: at, activated_at: at, retired_at: null };
  const origin = {
    build_id: "bld_1",
    commit: hash,
    image_ref: "sha256:1",
    image_bytes: 1024 ** 2,
    rolled_back_from: null,
    rehearse_only: false,
  };
  return { id: "dep_1", number: 1, status: "active", trigger: "redeploy", ...origin, ...times, failure: null, ...more };
}

/** The failure of a build. */
export function sampleFailure(more: Partial<NonNullable<Build["failure"]>> = {}): NonNullable<Build["failure"]> {
  return {
    stage: "install",
    code: "install_failed",
    summary: "npm ci failed.",
    hint: "Commit the lock file.",
    log_tail: ["npm error"],
    ...more,
  };
}

/** An owner, by a token that never expires. */
export function sampleMe(): Result<"me.get"> {
  const rights = { role: "owner" as const, platform_admin: true, scopes: ["projects:read"], approval_mode: false };
  return {
    organization: { id: "org_1", slug: "main", name: "Main" },
    person: null,
    role: "owner",
    platform_admin: true,
    token: {
      id: "tok_1",
      name: "first",
      kind: "token",
      person: null,
      prefix: "berth_o_",
      created_at: at,
      expires_at: null,
      projects: null,
      ...rights,
    },
    platform: {
      version: "0.1.0",
      ssh_host_key: "SHA256:hostkey",
      runtime: "process",
      network: "private",
      isolation: ["user", "pid"],
      missing: [],
    },
  };
}

/** An SSH key of the organization. */
export function sampleKey(): Result<"ssh-keys.create"> {
  return {
    id: "key_1",
    name: "laptop",
    public_key: "ssh-ed25519 AAAA laptop",
    fingerprint: "SHA256:abc",
    created_at: at,
    active: true,
    expires_at: null,
  };
}

/** A hostname below an apex domain that still lacks its DNS records, including the ownership proof. */
export function sampleDomain(more: Partial<Result<"domains.attach">> = {}): Result<"domains.attach"> {
  const name = "www.example.com";
  const address = { type: "A", name, value: "192.0.2.1" } as const;
  const txt = { type: "TXT", name: `_berth.${name}`, value: "berth-proof=1" } as const;
  return {
    id: "dom_1",
    hostname: name,
    dns_status: "pending",
    dns_detail: "The name has no address in DNS yet.",
    serving: false,
    serving_until: null,
    redirect_to: null,
    checked_at: at,
    ssl_status: "pending",
    ssl_detail: "A certificate is ordered once the name leads here.",
    ssl_next_attempt_at: null,
    ssl_steps: [],
    instructions: {
      ...address,
      values: [address.value],
      records: [address, txt],
      alias: { type: "CNAME", name, value: "demo.apps.example.net" },
      txt,
      zone: "example.com",
      is_apex: false,
      note: "Create the A record in the zone example.com.",
    },
    created_at: at,
    ...more,
  };
}

export function samplePlan(more: Partial<Plan> = {}): Plan {
  const what = { kind: "static", name: "Static files", uses_dockerfile: false, tools: [], notes: [], steps: [] };
  return {
    ...{ outcome: "deploys", commit: null, branch: "main", root: "", berth_file: null, overruled: [], watch: null },
    ...{ failure: null, build: { ...what, earlier_build: null }, processes: [], processes_ended: [] },
    ...{ release_command: null, port: null, health_path: null, crons: [], ahead: null, missing_variables: [] },
    ...more,
  };
}
