import { posix } from "node:path";
import { BuildRefused } from "./failures.ts";
import type { BuiltFiles, Start } from "./plan.ts";
import type { SourceTree } from "./source-tree.ts";

// The heap may use 70 % of the replica's memory: threads, code and buffers need the rest. JAVA_OPTS comes later and wins. MaxRAM is set
// from the limit files because on cgroup v1 the JVM finds the limit only if it sees all hierarchies; otherwise it assumes the machine's
// memory.
const limitFiles = "/sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes";
const limit = `$(sed -nE 's/^[0-9]{1,13}$/-XX:MaxRAM=&/p' ${limitFiles} 2>/dev/null)`;
const options = `${limit} -XX:MaxRAMPercentage=70 $JAVA_OPTS`;
const ports = "-Dserver.port=$PORT -Dquarkus.http.port=$PORT -Dquarkus.http.host=0.0.0.0 -Dmicronaut.server.port=$PORT";

/** Returns how to start what Maven or Gradle built. Throws BuildRefused if nothing runnable was built. */
export function javaStart(tree: SourceTree, files: BuiltFiles): Start {
  const modules = modulesOf(tree);
  const found = quarkus(modules, files) ?? installed(modules, files) ?? archive(modules, files);
  if (found !== null) return found;
  throw new BuildRefused("build_output_missing", {
    summary: "The build produced no executable archive: there is none in target/ or build/libs/.",
    hint: "Make an executable archive (spring-boot-maven-plugin, maven-shade-plugin, Gradle's application plugin), or add a Procfile with `web: java -jar …`.",
  });
}

// Plugins that build self-contained archives.
const executable =
  /spring-boot-maven-plugin|maven-shade-plugin|maven-assembly-plugin|quarkus|org\.springframework\.boot|shadow|application/;

/** Returns the folders that have a build file, first those whose build file names a plugin from `executable`. */
function modulesOf(tree: SourceTree): readonly string[] {
  const manifests = tree.paths.filter((path) => /(?:^|\/)(?:pom\.xml|build\.gradle(?:\.kts)?)$/.test(path));
  const runs = (path: string) => executable.test(tree.text(path) ?? "");
  const ordered = [...manifests.filter(runs), ...manifests.filter((path) => !runs(path))];
  return [...new Set([...ordered.map((path) => posix.dirname(path)), "."])];
}

function quarkus(modules: readonly string[], files: BuiltFiles): Start | null {
  const places = modules.flatMap((module) =>
    ["target", "build"].map((folder) => posix.join(module, folder, "quarkus-app/quarkus-run.jar")),
  );
  const found = places.find((path) => files.has(path));
  return found === undefined ? null : jar(found);
}

/** Finds the output of Gradle's application plugin: a script and its libraries. */
function installed(modules: readonly string[], files: BuiltFiles): Start | null {
  for (const module of modules) {
    const folder = posix.join(module, "build/install");
    for (const name of files.folders(folder)) {
      const script = posix.join(folder, name, "bin", name);
      if (!isPlainPath(script) || !files.has(script)) continue;
      const command = `JAVA_OPTS="${options} ${ports}" ${script}`;
      return { how: "command", command, because: "the output of the application plugin" };
    }
  }
  return null;
}

function archive(modules: readonly string[], files: BuiltFiles): Start | null {
  for (const module of modules) {
    for (const folder of ["target", "build/libs"]) {
      const place = posix.join(module, folder);
      const names = files.files(place).filter((name) => /\.[jw]ar$/.test(name) && isPlainPath(name) && !isBeside(name));
      const [chosen] = names.toSorted((a, b) => rank(a) - rank(b));
      if (chosen !== undefined) return jar(posix.join(place, chosen));
    }
  }
  return null;
}

const isPlainPath = (path: string): boolean => /^[\w./@+-]+$/.test(path);
const isBeside = (name: string): boolean => /^original-|-(?:sources|javadoc|tests|plain)\.jar$/.test(name);
/** Sorts self-contained archives first. */
const rank = (name: string): number =>
  /-(?:all|exec|runner|shaded|fat|jar-with-dependencies)\.jar$/.test(name) ? 0 : name.endsWith(".jar") ? 1 : 2;

function jar(path: string): Start {
  return { how: "command", command: `java ${options} ${ports} -jar ${path}`, because: path };
}
