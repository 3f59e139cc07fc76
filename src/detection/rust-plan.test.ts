import assert from "node:assert/strict";
import { test } from "node:test";
import { detect } from "./detect.ts";
import { BuildRefused } from "./failures.ts";
import { noJava, planBuild } from "./plan-build.ts";
import { startCommand, testTree } from "../../test/support/source-tree.ts";

const planOf = (files: Record<string, string>) => {
  const tree = testTree(files);
  const detected = detect(tree);
  return planBuild(detected, tree, { python: null, versions: { rust: "1.80.0" }, java: noJava, home: "/app" });
};
const refusalOf = (files: Record<string, string>) => {
  try {
    planOf(files);
  } catch (error) {
    if (error instanceof BuildRefused) return error;
  }
  return assert.fail("it was not refused");
};
const commandOf = (source: Record<string, string>) => startCommand(planOf(source));

const shop = { "Cargo.toml": `[package]\nname = "shop"\nversion = "0.1.0"\n`, "src/main.rs": "" };

test("a Rust program is built as locked and started under its own name", () => {
  assert.equal(commandOf(shop), "./bin/shop");
  assert.ok(
    planOf({ ...shop, "Cargo.lock": "" }).build.every(({ args }) => args[0] !== "cargo" || args.includes("--locked")),
  );
  assert.match(planOf(shop).notes.join(), /No Cargo\.lock/);
});

test("the files of a commit are new to Cargo, whatever their time", () => {
  const commands = planOf(shop).build.map(({ args }) => args.join(" "));
  const touch = commands.findIndex((command) => command.includes("touch"));
  assert.ok(touch >= 0 && touch < commands.findIndex((command) => command.startsWith("cargo build")));
});

test("a Procfile command gets the program of its name where it expects it", () => {
  const several = { ...shop, "src/bin/work.rs": "", "src/bin/migrate/main.rs": "" };
  const made = planOf({ ...several, Procfile: "web: ./target/release/shop\nworker: work --all\nrelease: bin/migrate" });
  assert.deepEqual(made.makes, ["target/release/shop", "bin/migrate", "bin/work"]);
  assert.deepEqual(planOf({ ...several, Procfile: "worker: bin/work" }).makes, ["bin/shop", "bin/work"]);
  assert.throws(() => commandOf({ ...shop, Procfile: "worker: bin/shop" }), { code: "no_start_command" });
  assert.equal(refusalOf({ ...shop, Procfile: "web: ./target/release/other" }).code, "procfile_command_missing");
});

test("of several programs default-run serves, else the one of the package's name; otherwise they are named", () => {
  const bins = { "src/bin/one.rs": "", "src/bin/two.rs": "" };
  const chosen = { ...bins, "Cargo.toml": `[package]\nname = "x"\ndefault-run = "two"\n` };
  assert.equal(commandOf(chosen), "./bin/two");
  assert.match(refusalOf({ ...bins, "Cargo.toml": `[package]\nname = "x"\n` }).message, /several programs: one, two/);
  assert.match(refusalOf({ "Cargo.toml": `[package]\nname = "x"\n`, "src/lib.rs": "" }).message, /no program/);
  const named = `[package]\nname = "x"\n[[bin]]\nname = "site"\npath = "src/main.rs"\n`;
  assert.equal(commandOf({ "Cargo.toml": named, "src/main.rs": "" }), "./bin/site");
});

test("the members of a workspace are looked through, other packages below it are not", () => {
  const crate = (name: string) => `[package]\nname = "${name}"\nrust-version.workspace = true\n`;
  const workspace = {
    "Cargo.toml": `[workspace]\nmembers = ["crates/*"]\n`,
    ...{ "crates/shop/Cargo.toml": crate("shop"), "crates/shop/src/main.rs": "" },
    ...{ "examples/demo/Cargo.toml": crate("demo"), "examples/demo/src/main.rs": "" },
  };
  assert.equal(commandOf(workspace), "./bin/shop");
  const newer = {
    ...workspace,
    "Cargo.toml": `${workspace["Cargo.toml"]}[workspace.package]\nrust-version = "1.99"\n`,
  };
  assert.match(refusalOf(newer).message, /crates\/shop\/Cargo\.toml requires Rust 1\.99; this machine has 1\.80\.0/);
});

test("Rocket gets the port by its own variables", () => {
  const rocket = { ...shop, "Cargo.toml": `${shop["Cargo.toml"]}[dependencies]\nrocket = "0.5"\n` };
  assert.equal(commandOf(rocket), "ROCKET_ADDRESS=0.0.0.0 ROCKET_PORT=$PORT ./bin/shop");
});
