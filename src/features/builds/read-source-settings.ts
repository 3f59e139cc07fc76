import { readBerthFile, type BerthFile } from "../../contract/berth-file.ts";
import type { Quarantine, Repositories } from "../../ports/repositories.ts";

/** A commit of a project, and the project's own settings about its source. */
export interface SourceOf {
  readonly project_id: string;
  readonly commit: string;
  /** The project's configured folder; it overrides the file's. */
  readonly root: string | null;
  readonly quarantine?: Quarantine | null;
}

export type SourceSettings =
  | { readonly outcome: "read"; readonly file: BerthFile | null; readonly root: string; readonly path: string }
  | { readonly outcome: "invalid"; readonly problems: readonly string[] };

const largestBytes = 64 * 1024;

/**
 * Reads the commit's berth.json from the project's folder. Without a configured folder, reads it from the repository's root, where it may
 * name the folder.
 */
export async function readSourceSettings(repositories: Repositories, source: SourceOf): Promise<SourceSettings> {
  const { project_id, commit, root, quarantine = null } = source;
  const path = root === null ? "berth.json" : `${root}/berth.json`;
  const bytes = await repositories.read(project_id, commit, { path, maxBytes: largestBytes, quarantine });
  if (bytes === null) return { outcome: "read", file: null, root: root ?? "", path };
  const read = readBerthFile(bytes.toString());
  if ("problems" in read) return { outcome: "invalid", problems: read.problems };
  return { outcome: "read", file: read.file, root: root ?? read.file.root ?? "", path };
}

/** The settings in berth.json that affect the deployment; stored with the build. */
export type DeploymentSettings = Pick<BerthFile, "port" | "health_path" | "crons">;
