import { askedVersions, versionNotes } from "./asked-versions.ts";
import { BuildRefused } from "./failures.ts";
import { javaStart } from "./java-start.ts";
import { chooseJdk, jdkWish, type Jdk } from "./java-version.ts";
import type { BuildPlan, Step } from "./plan.ts";
import type { SourceTree } from "./source-tree.ts";

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
