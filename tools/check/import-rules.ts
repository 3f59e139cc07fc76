/** What may import what, as dependency-cruiser's rules. An arrow never points up. Every rule has a planted breach in imports.test.ts. */
export const importRules: readonly ImportRule[] = [
  {
    name: "kit-knows-nothing-of-ours",
    comment: "kit holds words without domain: Node's core and itself only",
    from: { path: "^src/kit/", pathNot: tests() },
    to: { pathNot: "^src/kit/", dependencyTypesNot: ["core"] },
  },
  {
    name: "sandbox-knows-no-domain",
    comment: "sandbox runs any program: it may import kit and itself",
    from: { path: "^src/sandbox/", pathNot: tests() },
    to: { pathNot: "^src/(?:sandbox|kit)/", dependencyTypesNot: ["core"] },
  },
  {
    name: "contract-loads-in-a-browser",
    comment: "contract may import zod, ignore and itself, not even Node's core",
    from: { path: "^src/contract/", pathNot: tests() },
    to: { pathNot: "^(?:src/contract/|node_modules/(?:zod|ignore)/)" },
  },
  {
    name: "ports-say-what-not-how",
    comment: "ports may import contract, kit and each other",
    from: { path: "^src/ports/", pathNot: tests() },
    to: { pathNot: "^src/(?:ports|contract|kit)/", dependencyTypesNot: ["core"] },
  },
  {
    name: "ports-import-types-only",
    comment: "a port that needs kit or Node's core at run time holds an implementation",
    from: { path: "^src/ports/", pathNot: tests() },
    to: { pathNot: "^src/(?:ports|contract)/", dependencyTypesNot: ["type-only"] },
  },
  {
    name: "detection-decides-without-a-disk",
    comment:
      "detection looks at what it is given: it may import ports' types, kit's patterns and quoting, and libraries that parse, nothing that reads or runs",
    from: { path: "^src/detection/", pathNot: tests() },
    to: {
      pathNot:
        "^(?:src/(?:detection|ports)/|src/kit/(?:glob|quoted)\\.ts$|(?:node:)?(?:crypto|path)$|node_modules/(?:@types/)?(?:semver|smol-toml)/)",
    },
  },
  {
    name: "building-serves-builders",
    comment: "building is what all builders share: it may import detection, ports' types and kit",
    from: { path: "^src/building/", pathNot: tests() },
    to: { pathNot: "^src/(?:building|detection|ports|kit)/", dependencyTypesNot: ["core"] },
  },
  {
    name: "postgres-serves-postgres-hosts",
    comment:
      "postgres is what all hosts of databases share: it may import ports' types, the sandbox, kit and its driver",
    from: { path: "^src/postgres/", pathNot: tests() },
    to: {
      pathNot: "^(?:src/(?:postgres|ports|sandbox|kit)/|node_modules/(?:@types/)?pg/)",
      dependencyTypesNot: ["core"],
    },
  },
  {
    name: "containers-serve-runtimes",
    comment: "containers is what all runtimes of containers share: it may import ports' types, the sandbox and kit",
    from: { path: "^src/containers/", pathNot: tests() },
    to: { pathNot: "^src/(?:containers|ports|sandbox|kit)/", dependencyTypesNot: ["core"] },
  },
  {
    name: "store-knows-no-features",
    comment: "store may import kit and its driver",
    from: { path: "^src/store/", pathNot: tests() },
    to: { pathNot: "^(?:src/(?:store|kit)/|node_modules/(?:@types/)?(?:pg|kysely)/)", dependencyTypesNot: ["core"] },
  },
  {
    name: "features-know-no-outside",
    comment: "features may import contract, kit, ports, store and each other's front doors; the world is behind ports",
    from: { path: "^src/features/", pathNot: tests() },
    to: {
      pathNot: "^(?:src/(?:features|contract|kit|ports|store)/|node_modules/(?:kysely|zod|tldts)/)",
      dependencyTypesNot: ["core"],
    },
  },
  {
    name: "features-use-front-doors",
    comment: "another feature is used only through its <noun>.ts",
    from: { path: "^src/features/([^/]+)/", pathNot: tests() },
    to: { path: "^src/features/[^/]+/", pathNot: `^(?:src/features/$1/|${frontDoor()})` },
  },
  {
    name: "reconcile-uses-front-doors",
    comment: "reconcile may import features' front doors, store, ports, contract and kit",
    from: { path: "^src/reconcile/", pathNot: tests() },
    to: {
      pathNot: `^(?:src/(?:reconcile|store|ports|contract|kit)/|src/features/[^/]+\\.ts$|${frontDoor()}|node_modules/kysely/)`,
      dependencyTypesNot: ["core"],
    },
  },
  {
    name: "git-knows-ports-only",
    comment: "git may import ports, the sandbox, kit and ssh2; who may push and what becomes of it is behind its gate",
    from: { path: "^src/git/", pathNot: tests() },
    to: {
      pathNot: "^(?:src/(?:git|ports|sandbox|kit)/|node_modules/(?:@types/)?ssh2/)",
      dependencyTypesNot: ["core"],
    },
  },
  {
    name: "http-knows-rows-not-nouns",
    comment:
      "http may import contract, mcp, store, kit, features' handlers and front doors, fastify, ws, marked, and what verifies passkeys and identity providers",
    from: { path: "^src/http/", pathNot: tests() },
    to: {
      pathNot: `^(?:src/(?:http|mcp|contract|store|kit)/|src/features/[^/]+\\.ts$|src/features/[^/]+/handlers\\.ts$|${frontDoor()}|node_modules/(?:fastify|@fastify/[^/]+|zod|kysely|lru-cache|ws|marked|@simplewebauthn/server|openid-client)/)`,
      dependencyTypesNot: ["core"],
    },
  },
  {
    name: "handlers-are-for-http",
    comment: "only http and the composition root import handlers; others use the feature's front door",
    from: { pathNot: ["^src/(?:http|daemon)/", "^src/features/([^/]+)/", tests()] },
    to: { path: "^src/features/[^/]+/handlers\\.ts$" },
  },
  {
    name: "adapters-implement-ports-only",
    comment:
      "an adapter may import its port, the sandbox, detection and building (builders), postgres (hosts of databases), containers (runtimes), kit and its own npm package",
    from: { path: "^src/adapters/", pathNot: tests() },
    to: { path: "^src/", pathNot: "^src/(?:adapters|ports|sandbox|detection|building|postgres|containers|kit)/" },
  },
  {
    name: "adapters-know-their-own-port",
    comment:
      "runtime-process implements ports/runtime.ts and reads ports/runtime-*.ts; of other ports it may import types only, but for the format that builder and runtime share",
    from: { path: "^src/adapters/([a-z-]+)-[a-z0-9]+/", pathNot: tests() },
    to: {
      path: "^src/ports/",
      pathNot: "^src/ports/(?:$1[.-]|(?:release-folder|image-labels)\\.)",
      dependencyTypesNot: ["type-only"],
    },
  },
  {
    name: "adapters-stand-alone",
    comment: "an adapter imports no other adapter: share through kit or sandbox",
    from: { path: "^src/adapters/([^/]+)/" },
    to: { path: "^src/adapters/", pathNot: "^src/adapters/$1/" },
  },
  {
    name: "adapters-bring-their-own-package",
    comment: "the server's frameworks have no place in an adapter",
    from: { path: "^src/adapters/", pathNot: tests() },
    to: { path: "^node_modules/(?:fastify|zod|kysely|commander|pino|ssh2)/" },
  },
  {
    name: "nobody-imports-the-daemon",
    comment: "daemon is the composition root: wiring flows out of it as arguments",
    from: { path: "^src/", pathNot: "^src/daemon/" },
    to: { path: "^src/daemon/" },
  },
  {
    name: "client-helps-clients",
    comment: "client is what programs that call the API share: it may import contract and kit",
    from: { path: "^src/client/", pathNot: tests() },
    to: { pathNot: "^src/(?:client|contract|kit)/", dependencyTypesNot: ["core"] },
  },
  {
    name: "mcp-is-a-client",
    comment: "the tools for agents may import contract, client, kit and their own package",
    from: { path: "^src/mcp/", pathNot: tests() },
    to: {
      pathNot: "^(?:src/(?:mcp|client|contract|kit)/|node_modules/(?:zod|@modelcontextprotocol/server)/)",
      dependencyTypesNot: ["core"],
    },
  },
  {
    name: "cli-is-a-client",
    comment: "the command line may import contract, client, kit and its own packages",
    from: { path: "^src/cli/", pathNot: tests() },
    to: {
      pathNot: "^(?:src/(?:cli|client|contract|kit)/|node_modules/(?:commander|tar|ws|zod)/)",
      dependencyTypesNot: ["core"],
    },
  },
  {
    name: "dashboard-is-a-client",
    comment: "of ours the dashboard may import contract",
    from: { path: "^src/dashboard/", pathNot: tests() },
    to: { path: "^src/", pathNot: "^src/(?:dashboard|contract)/" },
  },
  {
    name: "bundler-is-a-program",
    comment:
      "the bundler runs in a process of its own: it may import Vite, its plugins and contract, and nobody imports it",
    from: { path: "^src/bundler/" },
    to: { path: "^src/", pathNot: "^src/(?:bundler|contract)/" },
  },
  {
    name: "one-file-starts-processes",
    comment: "src/kit/exec.ts is the only file that imports node:child_process",
    from: { pathNot: "^src/kit/exec\\.ts$" },
    to: { path: "^(?:node:)?child_process$", dependencyTypesNot: ["type-only"] },
  },
  {
    name: "source-needs-no-tools",
    comment: "src runs without test/ and tools/",
    from: { path: "^src/", pathNot: tests() },
    to: { path: "^(?:test|tools)/" },
  },
  {
    name: "tests-are-imported-by-tests",
    comment: "production code imports no test, suite or fixture",
    from: { path: "^src/", pathNot: tests() },
    to: { path: tests() },
  },
  {
    name: "no-development-packages-at-run-time",
    comment: "a package that src needs at run time belongs into dependencies",
    from: { path: "^src/", pathNot: tests() },
    to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["type-only"] },
  },
  {
    name: "packages-are-declared",
    comment: "an imported package stands in package.json",
    from: {},
    to: { dependencyTypes: ["npm-no-pkg", "npm-unknown"] },
  },
  {
    name: "imports-resolve",
    comment: "an import names something that exists",
    from: {},
    to: { couldNotResolve: true },
  },
  {
    name: "no-circles",
    comment: "two files that need each other, be it for a type, are one file, or a third is missing",
    from: {},
    to: { circular: true },
  },
];

/** One rule: `from` and `to` are dependency-cruiser's conditions, all of which must hold for a breach. */
export interface ImportRule {
  readonly name: string;
  readonly comment: string;
  readonly from: Readonly<Record<string, unknown>>;
  readonly to: Readonly<Record<string, unknown>>;
}

// Patterns use (?:…) alone: dependency-cruiser joins arrays with | and a further capture group would shift $1.
function tests(): string {
  return "(?:\\.test\\.ts$|\\.suite\\.ts$|-fixture\\.ts$|/test-[^/]+\\.ts$)";
}

function frontDoor(): string {
  return "src/features/(?<noun>[^/]+)/\\k<noun>\\.ts$";
}
