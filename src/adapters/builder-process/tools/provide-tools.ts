import { join } from "node:path";
import { BuildRefused } from "../../../detection/failures.ts";
import type { BuildPlan, Kind } from "../../../detection/plan.ts";
import type { JavaOfMachine } from "../../../detection/java-plan.ts";
import { noJava, type Machine, type Program } from "../../../detection/plan-build.ts";
import { run, systemPath } from "../../../kit/exec.ts";
import type { ProcessBuilderOptions } from "../options.ts";
import { home } from "../steps/workspace.ts";
import { denoToolchain, nodeHeaders, nodeToolchain, packageManagerToolchain, type Toolchain } from "./toolchain.ts";

export interface ProvidedTools {
  readonly inBuild: readonly Toolchain[];
  readonly inRelease: readonly Toolchain[];
}

/** Prepares the tools of a plan; missing ones come from the registry. Throws `BuildRefused` if a tool is not available. */
export async function provideTools(options: ProcessBuilderOptions, { tools }: BuildPlan): Promise<ProvidedTools> {
  const packages = packageOptions(options);
  const provided: ProvidedTools & { inBuild: Toolchain[]; inRelease: Toolchain[] } = { inBuild: [], inRelease: [] };
  let nodeVersion = process.version.slice(1);
  for (const wish of tools) {
    const tool = await provide(wish);
    if (tool === null) continue;
    provided.inBuild.push(tool);
    if (wish.inRelease) provided.inRelease.push(tool);
  }
  return provided;

  async function provide(wish: BuildPlan["tools"][number]): Promise<Toolchain | null> {
    switch (wish.tool) {
      case "node": {
        const node = await nodeToolchain(packages, wish.wish);
        nodeVersion = node.version;
        const headers = await nodeHeaders(packages, node);
        if (headers !== null) provided.inBuild.push(headers);
        return node;
      }
      case "package-manager":
        return packageManagerToolchain(packages, wish.manager, nodeVersion);
      case "go":
        if (options.goRoot === null) throw new BuildRefused("go_missing");
        return { name: "go", version: "", source: options.goRoot, target: "/opt/go" };
      case "rust":
        if (options.languages.rustRoot === null) throw new BuildRefused("rust_missing");
        return { name: "rust", version: "", source: options.languages.rustRoot, target: "/opt/rust" };
      case "deno":
        return denoToolchain(packages, wish.wish);
      case "java":
        return { name: "java", version: wish.jdk.version, source: wish.jdk.folder, target: javaHome };
      case "maven":
      case "gradle": {
        const source = options.languages[wish.tool];
        // Debian's Maven and Gradle consist of links below /usr, which sandboxes see in place.
        return source === null || source.startsWith("/usr/")
          ? null
          : { name: wish.tool, version: "", source, target: `/opt/${wish.tool}` };
      }
    }
  }
}

export async function machineFor(options: ProcessBuilderOptions, kind: Kind): Promise<Machine> {
  const interpreter = kind === "python" ? options.pythonBin : null;
  const pythonVersion =
    interpreter === null ? null : await versionOf(interpreter, ["--version"], /Python (\d+\.\d+\.\d+)/);
  return {
    home,
    python:
      interpreter === null || pythonVersion === null
        ? null
        : { interpreter, version: pythonVersion, settings: JSON.stringify(options.packageEnv) },
    java: kind === "java" ? javaOf(options) : noJava,
    versions: await versionsFor(options, kind),
  };
}

const javaHome = "/opt/java";

function javaOf({ languages }: ProcessBuilderOptions): JavaOfMachine {
  const jdks = languages.jdks.map((jdk) => ({ ...jdk, home: javaHome }));
  return { jdks, tools: { maven: languages.maven !== null, gradle: languages.gradle !== null } };
}

async function versionsFor({ goRoot, languages }: ProcessBuilderOptions, kind: Kind): Promise<Machine["versions"]> {
  const ask = async (name: Program, file: string | null, args: readonly string[], pattern: RegExp) => {
    const version = file === null ? null : await versionOf(file, args, pattern);
    return version === null ? {} : { [name]: version };
  };
  const inFolder = (folder: string | null, program: string) => (folder === null ? null : join(folder, "bin", program));
  switch (kind) {
    case "go":
      return ask("go", inFolder(goRoot, "go"), ["version"], /go(\d+\.\d+(?:\.\d+)?)/);
    case "rust":
      return ask("rust", inFolder(languages.rustRoot, "rustc"), ["--version"], /rustc (\d+\.\d+\.\d+)/);
    case "ruby":
      return ask("ruby", languages.ruby, ["--version"], /ruby (\d+\.\d+\.\d+)/);
    case "php": {
      const composer = languages.composer === null ? {} : { composer: "of the machine" };
      return { ...(await ask("php", languages.php, ["--version"], /PHP (\d+\.\d+\.\d+)/)), ...composer };
    }
    default:
      return {};
  }
}

function packageOptions({ toolsDir, nodeBin, npmDir, packageEnv, ownPackageEnv, caFile }: ProcessBuilderOptions) {
  const patience = { npm_config_fetch_retries: "1", npm_config_fetch_retry_mintimeout: "1000" };
  const certificates = caFile === undefined ? {} : { NODE_EXTRA_CA_CERTS: caFile };
  const env = {
    PATH: systemPath,
    HOME: toolsDir,
    npm_config_cache: join(toolsDir, ".npm"),
    ...patience,
    ...certificates,
    ...(ownPackageEnv ?? packageEnv),
  };
  return { folder: toolsDir, nodeBin, npmDir, env };
}

async function versionOf(file: string, args: readonly string[], pattern: RegExp): Promise<string | null> {
  const result = await run({ file, args }, { timeoutMs: 60_000 }).catch(() => null);
  return pattern.exec(`${result?.stdout}${result?.stderr}`)?.[1] ?? null;
}
