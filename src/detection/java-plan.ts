import { askedVersions, versionNotes } from "./asked-versions.ts";
import { BuildRefused } from "./failures.ts";
import { chooseJdk, jdkWish, type Jdk } from "./java-version.ts";
import type { BuildPlan, Step, BuiltFiles, Start } from "./plan.ts";
import type { SourceTree } from "./source-tree.ts";
import { posix } from "node:path";

export interface JavaOfMachine {
  /** The JDK that `java` starts comes first. */
  readonly jdks: readonly Jdk[];
  /** The machine's build tools, for sources without a wrapper or whose wrapper can't fetch its own. */
  readonly tools: Readonly<Record<JavaTool, boolean>>;
}

export type JavaTool = "maven" | "gradle";

const gradleFiles = ["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"];

export function javaPlan(tree: SourceTree, { jdks, tools }: JavaOfMachine): BuildPlan {
  const tool = tree.has("pom.xml") ? "maven" : "gradle";
  const wish = jdkWish(tree);
  const jdk = chooseJdk(jdks, wish);
  const hasWrapper = tree.has(wrappers[tool]);
  if (!hasWrapper && !tools[tool]) throw toolMissing(tool);
  return {
    kind: "java",
    name: `Java app (${tool === "maven" ? "Maven" : "Gradle"})`,
    notes: [
      `Java ${jdk.version}${wish === null ? "" : `; ${wish.from} requires ${wish.major}`}`,
      ...notesOn(tree, jdk),
    ],
    tools: [{ tool: "java", jdk, inRelease: true }, ...(tools[tool] ? [{ tool, inRelease: false } as const] : [])],
    install: null,
    build: [buildStep(tree, { tool, jdk, hasWrapper, hasOwn: tools[tool] })],
    prune: [],
    // Spring may trust forwarded headers: only the edge reaches the application, and it replaces them.
    env: { SERVER_FORWARD_HEADERS_STRATEGY: "native" },
    start: (files) => javaStart(tree, files),
  };
}

function notesOn(tree: SourceTree, { version }: Jdk): string[] {
  const majorOf = (text: string) => /^(?:[a-z]+-)?(\d+)/i.exec(text)?.[1] ?? null;
  const asked = askedVersions(tree, "java").map((each) => ({ ...each, range: majorOf(each.text) }));
  return versionNotes(asked, "Java", version);
}

/** Returns whether this is a Java (or Kotlin, Scala, Groovy) application that Maven or Gradle builds. */
export function isJava(tree: SourceTree): boolean {
  return tree.has("pom.xml") || gradleFiles.some((file) => tree.has(file));
}

const wrappers: Readonly<Record<JavaTool, string>> = { maven: "mvnw", gradle: "gradlew" };
const programs: Readonly<Record<JavaTool, string>> = { maven: "mvn", gradle: "gradle" };

function toolMissing(tool: JavaTool): BuildRefused {
  const [name, wrap] = tool === "maven" ? ["Maven", "mvn wrapper:wrapper"] : ["Gradle", "gradle wrapper"];
  return new BuildRefused("build_tool_missing", {
    summary: `The source has no ${wrappers[tool]}, and this machine has no ${name}.`,
    hint: `Run \`${wrap}\` on your machine, commit the files that it creates and push again, or ask the operator for \`apt-get install ${tool}\`.`,
  });
}

interface Building {
  readonly tool: JavaTool;
  readonly jdk: Jdk;
  readonly hasWrapper: boolean;
  readonly hasOwn: boolean;
}

function buildStep(tree: SourceTree, { tool, jdk, hasWrapper, hasOwn }: Building): Step {
  const task = tool === "maven" ? mavenArgs : [...gradleArgs, gradleTask(tree)];
  const step = (args: Step["args"]): Step => ({
    title: `Building: ${args.filter((arg) => !quietFlags.has(arg)).join(" ")}`,
    stage: "build",
    args,
    env: { ...caches, ...(jdk.home === null ? {} : { JAVA_HOME: jdk.home }) },
    tool: "java",
    otherwise: "build_script_failed",
  });
  const own = step([programs[tool], ...task]);
  if (!hasWrapper) return own;
  // Run the wrapper by path, from which it finds its settings, and through sh, because checkouts from other systems lose the executable bit.
  const wrapped = step(["sh", `./${wrappers[tool]}`, ...task]);
  const note = `The wrapper could not fetch its ${programs[tool]}. The machine's own is used, whatever version it has.`;
  return hasOwn ? { ...wrapped, instead: { fits: lacksDistribution, note, step: own } } : wrapped;
}

const lacksDistribution = (output: string): boolean => unfetchedWrapper.test(output);

/** Matches the wrappers' output if their build tool could not be fetched or their own archive is not committed. */
export const unfetchedWrapper =
  /^(?:wget|curl|mvnw)\b.*[Ff]ailed to fetch|Failed to fetch https?:|Could not find or load main class org\.(?:gradle|apache\.maven)\.wrapper|Unable to access jarfile \S*wrapper|Exception[^\n]*\n(?:[ \t]+at [^\n]*\n|Caused by[^\n]*\n){0,40}?[ \t]+at org\.gradle\.wrapper\./m;

const mavenRepository = "/cache/m2";
const caches = { GRADLE_USER_HOME: "/cache/gradle", MAVEN_USER_HOME: mavenRepository };
const mavenArgs = [
  "--batch-mode",
  "--no-transfer-progress",
  `-Dmaven.repo.local=${mavenRepository}/repository`,
  "-DskipTests",
  "package",
];
const gradleArgs = ["--no-daemon", "--console=plain"];
const quietFlags = new Set(["--batch-mode", "--no-transfer-progress", mavenArgs[2], ...gradleArgs]);

/** Returns the Gradle task that builds something runnable, according to the plugin that a module names. */
function gradleTask(tree: SourceTree): string {
  const texts = tree.paths.filter((path) => /\.gradle(?:\.kts)?$/.test(path)).map((path) => tree.text(path) ?? "");
  const names = (pattern: RegExp) => texts.some((text) => pattern.test(text));
  if (names(/org\.springframework\.boot/)) return "bootJar";
  if (names(/io\.quarkus/)) return "quarkusBuild";
  if (names(/shadow/)) return "shadowJar";
  if (names(/^[ \t]*(?:id[ (]*["'])?`?application\b|io\.ktor\.plugin|plugin:\s*["']application/m)) return "installDist";
  return "assemble";
}

// The heap may use 70 % of the replica's memory: threads, code and buffers need the rest. JAVA_OPTS comes later and wins. MaxRAM is set
// from the limit files because on cgroup v1 the JVM finds the limit only if it sees all hierarchies; otherwise it assumes the machine's
// memory.
const limitFiles = "/sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes";
const limit = `$(sed -nE 's/^[0-9]{1,13}$/-XX:MaxRAM=&/p' ${limitFiles} 2>/dev/null)`;
const options = `${limit} -XX:MaxRAMPercentage=70 $JAVA_OPTS`;
const ports = "-Dserver.port=$PORT -Dquarkus.http.port=$PORT -Dquarkus.http.host=0.0.0.0 -Dmicronaut.server.port=$PORT";

/** Returns how to start what Maven or Gradle built. Throws BuildRefused if nothing runnable was built. */
function javaStart(tree: SourceTree, files: BuiltFiles): Start {
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
