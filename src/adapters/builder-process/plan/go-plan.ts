import { BuildRefused } from "../failure-codes.ts";
import type { SourceTree } from "../source/source-tree.ts";
import type { Plan, Start } from "./plan.ts";

/** What building a Go program takes. Refuses when there is no module or no main package. */
export function goPlan(tree: SourceTree, version: string): Plan {
  if (!tree.has("go.mod")) {
    throw new BuildRefused("build_script_failed", {
      stage: "detect",
      summary: "main.go is there, but no go.mod.",
      hint: "Run `go mod init <name>` and `go mod tidy`, commit go.mod and go.sum, and push again.",
    });
  }
  const main = mainPackage(tree);
  return {
    kind: "go",
    name: "Go app",
    notes: [`Go ${version}, package ${main}`],
    install: null,
    build: [
      {
        title: `Building: go build ${main}`,
        stage: "build",
        args: ["go", "build", "-trimpath", "-buildvcs=false", "-o", goProgram, main],
        env: { GOTOOLCHAIN: "local", GOFLAGS: "-modcacherw" },
        tool: "go",
        otherwise: "build_script_failed",
      },
    ],
    prune: [],
  };
}

/** Where the program is put, in the application's folder. */
const goProgram = "bin/web";

/** Whether this is a Go application: a module, or a main.go at the root. */
export function isGo(tree: SourceTree): boolean {
  return tree.has("go.mod") || tree.has("main.go");
}

/** A Go application without a Procfile command runs its program. */
export const goStart: Start = { how: "command", command: `./${goProgram}`, because: "the program that was built" };

function mainPackage(tree: SourceTree): string {
  const packages = tree.paths
    .filter(
      (path) => path.endsWith(".go") && !path.endsWith("_test.go") && /^package main\b/m.test(tree.text(path) ?? ""),
    )
    .map((path) => (path.includes("/") ? `./${path.slice(0, path.lastIndexOf("/"))}` : "."));
  const name = /^module[ \t]+(\S+)/m
    .exec(tree.text("go.mod") ?? "")?.[1]
    ?.split("/")
    .at(-1);
  const commands = [...new Set(packages)];
  const preferred = [".", "./cmd/web", "./cmd/server", "./cmd/api", `./cmd/${name}`].find((path) =>
    commands.includes(path),
  );
  const chosen = preferred ?? (commands.length === 1 ? commands[0] : undefined);
  if (chosen !== undefined) return chosen;
  const found =
    commands.length === 0 ? "no main package was found" : `several main packages were found: ${commands.join(", ")}`;
  throw new BuildRefused("no_start_command", {
    summary: `This is a Go module, but ${found}.`,
    hint: "Put the main package at the root or into cmd/web.",
  });
}
