import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { run } from "../../../kit/exec.ts";

/** Languages of this machine that builds use besides Node.js, Python and Go. Null: it has none. */
export interface MachineLanguages {
  /** The folder with `bin/cargo` and `bin/rustc`. */
  readonly rustRoot: string | null;
  /** Java development kits, first the one of PATH. */
  readonly jdks: readonly { readonly version: string; readonly folder: string }[];
  /** The folders with `bin/mvn` and `bin/gradle`. */
  readonly maven: string | null;
  readonly gradle: string | null;
  /** Programs below /usr, which sandboxes see. */
  readonly ruby: string | null;
  readonly php: string | null;
  readonly composer: string | null;
}

const timeoutMs = 10_000;

/** Looks for them with the environment of the person who starts the platform: PATH, HOME. */
export async function findLanguages(env: Readonly<Record<string, string>>): Promise<MachineLanguages> {
  return {
    rustRoot: await rustRoot(env),
    jdks: findJdks(env),
    maven: folderOf(env, "mvn"),
    gradle: folderOf(env, "gradle"),
    ...{ ruby: systemProgram("ruby"), php: systemProgram("php"), composer: systemProgram("composer") },
  };
}

/** rustup's programs choose a toolchain; builds get that toolchain itself. */
async function rustRoot(env: Readonly<Record<string, string>>): Promise<string | null> {
  const path = `${env["PATH"] ?? ""}:${env["HOME"] ?? ""}/.cargo/bin`;
  const asked = await run(
    { file: "/usr/bin/env", args: ["rustc", "--print", "sysroot"] },
    { env: { ...env, PATH: path }, timeoutMs },
  ).catch(() => undefined);
  const root = asked?.exitCode === 0 ? asked.stdout.trim() : "";
  return root === "" ? null : root;
}

const javaFolders = "/usr/lib/jvm";

/** Debian has several names for one kit, so each is taken once. A kit without a compiler is none. */
function findJdks(env: Readonly<Record<string, string>>): MachineLanguages["jdks"] {
  const below = existsSync(javaFolders) ? readdirSync(javaFolders).map((name) => join(javaFolders, name)) : [];
  const first = [env["JAVA_HOME"], folderOf(env, "javac")].filter((each) => each !== null && each !== undefined);
  const kits = [...first, ...below.toSorted()].filter((folder) => existsSync(join(folder, "bin/javac")));
  return [...new Set(kits.map((folder) => realpathSync(folder)))].flatMap((folder) => {
    const version = versionOf(folder);
    return version === undefined ? [] : [{ version, folder }];
  });
}

function versionOf(folder: string): string | undefined {
  const file = join(folder, "release");
  if (!existsSync(file)) return undefined;
  return /^JAVA_VERSION="([\d.]+)/m.exec(readFileSync(file, "utf8"))?.[1];
}

function systemProgram(name: string): string | null {
  return [`/usr/bin/${name}`, `/usr/local/bin/${name}`].find((path) => existsSync(path)) ?? null;
}

/** The folder whose `bin` has this program, wherever links of PATH lead. */
function folderOf(env: Readonly<Record<string, string>>, program: string): string | null {
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder.startsWith("/"));
  const found = folders.map((folder) => join(folder, program)).find((file) => existsSync(file));
  return found === undefined ? null : dirname(dirname(realpathSync(found)));
}
