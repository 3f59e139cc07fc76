import assert from "node:assert/strict";
import { posix } from "node:path";
import { test } from "node:test";
import { detect } from "./detect.ts";
import { BuildRefused } from "./failures.ts";
import type { JavaOfMachine } from "./java-plan.ts";
import { planBuild } from "./plan-build.ts";
import { startCommand, testTree } from "../../test/support/source-tree.ts";

const jdks = ["21.0.4", "17.0.15"].map((version) => ({
  version,
  folder: `/usr/lib/jvm/${version}`,
  home: "/opt/java",
}));
const machine = { jdks, tools: { maven: true, gradle: true } };
const planOf = (files: Record<string, string>, java: JavaOfMachine = machine) => {
  const tree = testTree(files);
  return planBuild(detect(tree), tree, { python: null, java, versions: {}, home: "/app" });
};
const refusalOf = (files: Record<string, string>, java?: JavaOfMachine) => {
  try {
    planOf(files, java);
  } catch (error) {
    if (error instanceof BuildRefused) return error;
  }
  return assert.fail("it was not refused");
};
const commandsOf = (files: Record<string, string>, java?: JavaOfMachine) =>
  planOf(files, java).build.map(({ args }) => args.join(" "));
const started = (source: Record<string, string>, ...paths: string[]) =>
  startCommand(planOf(source), {
    has: (path) => paths.includes(path),
    mayExist: () => true,
    pages: () => 0,
    files: (folder) => paths.flatMap((path) => (posix.dirname(path) === folder ? [posix.basename(path)] : [])),
    folders: (folder) => {
      const below = paths.filter((path) => path.startsWith(`${folder}/`));
      return [...new Set(below.map((path) => path.slice(folder.length + 1).split("/")[0] as string))];
    },
  });

const pom = (text = "") => ({ "pom.xml": `<project>${text}</project>` });

test("Maven packages without tests, by the wrapper of the source or the machine's own", () => {
  assert.match(commandsOf(pom())[0] ?? "", /^mvn --batch-mode .* -DskipTests package$/);
  assert.match(commandsOf({ ...pom(), mvnw: "" })[0] ?? "", /^sh \.\/mvnw .* package$/);
  assert.equal(planOf({ ...pom(), mvnw: "" }).build[0]?.instead?.step.args[0], "mvn");
  const bare = { jdks, tools: { maven: false, gradle: false } };
  assert.equal(planOf({ ...pom(), mvnw: "" }, bare).build[0]?.instead, undefined);
  assert.equal(refusalOf(pom(), bare).code, "build_tool_missing");
});

test("the machine's tool takes over only where the wrapper could not fetch its own", () => {
  const instead = planOf({ "build.gradle": "", gradlew: "" }).build[0]?.instead;
  const unfetched = `Downloading https://example.org/gradle-8-bin.zip\n\nException in thread "main" java.net.UnknownHostException: example.org\n\tat java.base/sun.nio.ch.NioSocketImpl.connect(NioSocketImpl.java:567)\n\tat org.gradle.wrapper.Download.downloadInternal(SourceFile:100)\n`;
  assert.ok(instead);
  assert.ok(instead.fits(unfetched));
  assert.ok(instead.fits("Error: Could not find or load main class org.gradle.wrapper.GradleWrapperMain"));
  assert.ok(!instead.fits("FAILURE: Build failed with an exception.\n\n* What went wrong:\nCompilation failed"));
  assert.ok(
    planOf({ ...pom(), mvnw: "" }).build[0]?.instead?.fits("curl: Failed to fetch https://example.org/maven.zip"),
  );
});

test("Gradle runs the task that makes what can be run", () => {
  const task = (text: string) => commandsOf({ "build.gradle": text })[0]?.split(" ").at(-1);
  assert.equal(task(`plugins { id 'org.springframework.boot' version '3.4.4' }`), "bootJar");
  assert.equal(task(`plugins {\n  id 'application'\n}`), "installDist");
  assert.equal(task(`plugins {\n    application\n}`), "installDist");
  assert.equal(task(`plugins { id 'java' }`), "assemble");
});

test("the JDK is of the version that the source names, or the next newer one of the machine", () => {
  const version = (files: Record<string, string>) =>
    planOf(files).tools.flatMap((wish) => (wish.tool === "java" ? [wish.jdk.version] : []))[0];
  assert.equal(version(pom()), "21.0.4");
  assert.equal(version(pom("<java.version>17</java.version>")), "17.0.15");
  assert.equal(version(pom("<maven.compiler.source>1.8</maven.compiler.source>")), "17.0.15");
  assert.equal(
    version({ ...pom("<java.version>17</java.version>"), "system.properties": "java.runtime.version=21" }),
    "21.0.4",
  );
  assert.equal(version({ "build.gradle": "sourceCompatibility = JavaVersion.VERSION_1_8" }), "17.0.15");
  const refused = refusalOf(pom("<java.version>25</java.version>"));
  assert.deepEqual(
    [refused.code, refused.message],
    ["java_version_unavailable", "pom.xml requires Java 25; this machine has 21.0.4 and 17.0.15."],
  );
  const exact = { "build.gradle.kts": "java { toolchain { languageVersion = JavaLanguageVersion.of(19) } }" };
  assert.equal(refusalOf(exact).code, "java_version_unavailable");
  assert.equal(refusalOf(pom(), { ...machine, jdks: [] }).code, "java_missing");
});

test("what the build made is started, with its memory within the replica's and its port", () => {
  const beside = ["target/original-shop-1.jar", "target/shop-1-sources.jar"];
  const spring = started(pom(), ...beside, "target/shop-1.jar");
  assert.match(
    spring,
    /^java .*-XX:MaxRAM=.* -XX:MaxRAMPercentage=70 \$JAVA_OPTS -Dserver\.port=\$PORT .* -jar target\/shop-1\.jar$/,
  );
  assert.match(started(pom(), "target/shop-1.jar", "target/shop-1-jar-with-dependencies.jar"), /dependencies\.jar$/);
  assert.match(started(pom(), "target/quarkus-app/quarkus-run.jar", "target/shop-1.jar"), /quarkus-run\.jar$/);
  assert.match(started({ "build.gradle": "" }, "build/libs/shop-plain.jar", "build/libs/shop.jar"), /libs\/shop\.jar$/);
  assert.match(started({ "build.gradle": "" }, "build/install/shop/bin/shop"), /build\/install\/shop\/bin\/shop$/);
  const web = { ...pom(), "core/pom.xml": "", "web/pom.xml": "spring-boot-maven-plugin" };
  assert.match(started(web, "core/target/core.jar", "web/target/web.jar"), /web\/target\/web\.jar$/);
  assert.throws(() => started(pom(), ...beside), { code: "build_output_missing" });
});
