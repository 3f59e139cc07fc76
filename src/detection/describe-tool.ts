import semver from "semver";
import type { ToolWish } from "./plan.ts";

/** Describes a tool for people; `nodeVersion` is the version of the machine's own Node.js. */
export function describeTool(wish: ToolWish, nodeVersion: string): string {
  switch (wish.tool) {
    case "node": {
      const asked = wish.wish;
      if (asked === null) return `Node.js ${nodeVersion}`;
      return semver.satisfies(nodeVersion, asked.range)
        ? `Node.js ${nodeVersion}, as ${asked.from} asks`
        : `Node.js ${asked.from}`;
    }
    case "package-manager":
      return [wish.manager.name === "yarn-modern" ? "yarn" : wish.manager.name, wish.manager.version]
        .filter(Boolean)
        .join(" ");
    case "deno":
      return wish.wish === "" ? "Deno" : `Deno ${wish.wish}`;
    case "java":
      return `Java ${wish.jdk.version}`;
    default:
      return wish.tool;
  }
}
