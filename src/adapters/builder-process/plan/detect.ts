import { BuildRefused } from "../failure-codes.ts";
import type { SourceTree } from "../source/source-tree.ts";
import { isGo } from "./go-plan.ts";
import type { Kind } from "./plan.ts";
import { parseProcfile, type Procfile } from "./procfile.ts";
import { isPython } from "./python-plan.ts";

export interface Detected {
  readonly kind: Kind;
  readonly procfile: Procfile;
  /** The folder of a static site, with no language in it. */
  readonly siteFolder: string | null;
}

/**
 * Says what the source is: commands of a Procfile, else a Dockerfile (refused here), else Go, Python, Node, static files.
 * A Procfile's commands take the place of the language's own; the language's install still happens.
 */
export function detect(tree: SourceTree): Detected {
  const procfile = parseProcfile(tree.text("Procfile") ?? "");
  const hasCommands = procfile.web !== null || procfile.release !== null;
  if (!hasCommands && tree.has("Dockerfile")) throw new BuildRefused("dockerfile_needs_containers");
  const siteFolder = tree.has("index.html") ? "." : tree.has("public/index.html") ? "public" : null;
  return { kind: kindOf(tree, procfile, siteFolder), procfile, siteFolder };
}

function kindOf(tree: SourceTree, procfile: Procfile, siteFolder: string | null): Kind {
  if (isGo(tree)) return "go";
  if (isPython(tree)) return "python";
  if (tree.has("package.json")) return "node";
  if (procfile.web !== null) return "procfile";
  if (siteFolder !== null) return "static";
  if (procfile.release !== null || procfile.ignored.length > 0) {
    throw new BuildRefused("no_start_command", {
      summary: "The Procfile has no `web` process, and nothing else tells what to run.",
    });
  }
  throw new BuildRefused("nothing_to_run");
}
