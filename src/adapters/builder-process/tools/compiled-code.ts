import { randomBytes } from "node:crypto";
import { mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run, runOk } from "../../../kit/exec.ts";
import type { Log } from "../../../kit/log.ts";
import type { Sandbox } from "../../../sandbox/sandbox.ts";
import type { Toolchain } from "./toolchain.ts";

/**
 * npm's code as compiled by V8 (module.enableCompileCache), which saves a third of the time of a small `npm ci`. A build starts with an
 * empty /tmp, so the platform compiles that code once for each Node and npm. It does so itself, because no project may run what another
 * could write.
 */
export type CompiledCode = ReturnType<typeof compiledCode>;

// Node's default folder below os.tmpdir(): `<version>-<processor>-<hash of V8's flags>-<user>`.
const cacheInside = "/tmp/node-compile-cache";
const limits = { memoryBytes: 512 * 1024 * 1024, processes: 64, cpus: 1 };
// Packs, installs and runs a package, without any network.
const exercise =
  "npm pack --silent ./dependency && npm install --silent ./dependency-1.0.0.tgz && npm ci --silent && npm run --silent build";

/** Keeps the compiled code in `folder`, `<npm's version>-on-<Node's version>/`. `uid` is a user that owns no project. */
export function compiledCode(options: { folder: string; sandbox: Sandbox; uid: number; log: Log }) {
  const placeOf = (tools: readonly Toolchain[]) => {
    const [node, npm] = ["node", "npm"].map((name) => tools.find((tool) => tool.name === name)?.version);
    return node !== undefined && npm !== undefined ? join(options.folder, `${npm}-on-${node}`) : null;
  };
  const stopping = new AbortController();
  const tried = new Map<string, Promise<void>>();
  const makeAt = async (place: string, tools: readonly Toolchain[]) => {
    if (await stat(place).catch(() => null)) return;
    const draft = `${place}.making`;
    await removeTree(draft);
    try {
      await compile({ ...options, signal: stopping.signal }, tools, draft);
      await rename(join(draft, "made"), place);
    } finally {
      await removeTree(draft);
    }
  };
  return {
    /** Returns the mount for a build that uses these tools and runs as `uid`; null until the code is compiled. */
    async bind(tools: readonly Toolchain[], uid: number) {
      const place = placeOf(tools);
      const tag = place === null ? undefined : (await readdir(place).catch(() => []))[0];
      if (place === null || tag === undefined) return null;
      return { source: join(place, tag), target: `${cacheInside}/${tag}-${uid}`, writable: false };
    },
    /** Starts compiling, unless the code exists or was already tried since the start. */
    make(tools: readonly Toolchain[]) {
      const place = placeOf(tools);
      if (place === null || tried.has(place)) return;
      const failed = (error: unknown) => {
        if (!stopping.signal.aborted) options.log.warn({ err: error }, "builds start npm without its compiled code");
      };
      tried.set(place, makeAt(place, tools).catch(failed));
    },
    /** Resolves when no compilation is in progress. */
    settle: async () => void (await Promise.all(tried.values())),
    stop: async () => {
      stopping.abort();
      await Promise.all(tried.values());
    },
  };
}

/** Leaves `made/<tag>/` in the draft folder, or an empty `made/` if this Node keeps no compiled code. */
async function compile(
  { sandbox, uid, signal }: { sandbox: Sandbox; uid: number; signal: AbortSignal },
  tools: readonly Toolchain[],
  draft: string,
): Promise<void> {
  const [app, tmp, made] = ["app", "tmp", "made"].map((name) => join(draft, name)) as [string, string, string];
  for (const dir of [join(app, "dependency"), tmp, made]) await mkdir(dir, { recursive: true, mode: 0o755 });
  const dependency = { name: "dependency", version: "1.0.0" };
  await writeFile(join(app, "dependency", "package.json"), JSON.stringify(dependency));
  await writeFile(join(app, "package.json"), JSON.stringify({ name: "exercise", scripts: { build: "true" } }));
  const owner = sandbox.hostUid(uid);
  if (process.geteuid?.() === 0) await runOk({ file: "chown", args: ["-R", `${owner}:${owner}`, app, tmp] });
  const { exitCode, stderr } = await sandbox.run(
    {
      ...{
        id: `build-compiled-code-${randomBytes(4).toString("hex")}`,
        uid,
        argv: ["/bin/sh", "-c", exercise],
        limits,
      },
      env: { npm_config_cache: "/tmp/npm", npm_config_update_notifier: "false" },
      app: { source: app, access: "write" },
      storageDir: null,
      binds: [
        { source: tmp, target: "/tmp", writable: true },
        ...tools.map(({ source, target }) => ({ source, target, writable: false })),
      ],
      path: tools.map((tool) => `${tool.target}/bin`),
      network: { kind: "none" },
    },
    { timeoutMs: 120_000, signal },
  );
  if (exitCode !== 0) throw new Error(`npm's code could not be compiled: ${stderr.slice(-500)}`);
  for (const name of await readdir(join(tmp, "node-compile-cache")).catch(() => [])) {
    const target = join(made, name.replace(/-\d+$/, ""));
    // Node.js creates these files with mode 0600, but builds of every user must read the copy.
    const how = ["--recursive", "--no-preserve=mode,ownership", "--no-target-directory"];
    await runOk({ file: "cp", args: [...how, join(tmp, "node-compile-cache", name), target] });
  }
}

/** Deletes a folder recursively. Builds may leave folders that even their owner may not change, such as Go's module cache. */
async function removeTree(folder: string): Promise<void> {
  try {
    await rm(folder, { recursive: true, force: true });
  } catch {
    await run({ file: "chmod", args: ["--recursive", "u+rwX", folder] });
    // `rm` also handles paths that are too long for a single system call.
    await runOk({ file: "rm", args: ["--recursive", "--force", "--", folder] });
  }
}
