import { readBerthFile, type BerthFile } from "../../contract/berth-file.ts";
import { isWorkspaceMember, type Source } from "./workspace.ts";
import type { Repositories } from "../../ports/repositories.ts";

/** A commit of a project, and the project's own settings about its source. */
export interface SourceOf extends Source {
  /** The project's configured folder; it overrides the file's. */
  readonly root: string | null;
}

export interface ReadSettings {
  readonly outcome: "read";
  readonly file: BerthFile | null;
  /** Where the file is, or would be. */
  readonly path: string;
  /** The application's folder; empty: the whole repository. */
  readonly root: string;
  /** The folder that is built: `root`, or the whole repository if that is the workspace of this folder's application. */
  readonly folder: string;
  /** The application's folder in `folder`; undefined: it is `folder`. */
  readonly member: string | undefined;
}

export type SourceSettings = ReadSettings | { readonly outcome: "invalid"; readonly problems: readonly string[] };

const largestBytes = 64 * 1024;

/** Reads the commit's berth.json from the project's folder; without one, from the root, where it may name the folder. */
export async function readSourceSettings(repositories: Repositories, source: SourceOf): Promise<SourceSettings> {
  const { project_id, commit, root, quarantine = null } = source;
  const path = root === null ? "berth.json" : `${root}/berth.json`;
  const bytes = await repositories.read(project_id, commit, { path, maxBytes: largestBytes, quarantine });
  const read = bytes === null ? null : readBerthFile(bytes.toString());
  if (read !== null && "problems" in read) return { outcome: "invalid", problems: read.problems };
  const file = read?.file ?? null;
  const chosen = root ?? file?.root ?? "";
  const isMember = file?.dockerfile === undefined && (await isWorkspaceMember(repositories, source, chosen));
  const place = isMember ? { folder: "", member: chosen } : { folder: chosen, member: undefined };
  return { outcome: "read", file, path, root: chosen, ...place };
}

const mostMaskBytes = 1024 ** 2;

/** Reads the SQL that the commit's berth.json names as its mask; undefined: it names none, `sql: undefined`: there is no such file. */
export async function readMask(repositories: Repositories, source: SourceOf) {
  const settings = await readSourceSettings(repositories, source);
  if (settings.outcome !== "read" || settings.file?.mask === undefined) return undefined;
  const path = settings.root === "" ? settings.file.mask : `${settings.root}/${settings.file.mask}`;
  const sql = await repositories.read(source.project_id, source.commit, { path, maxBytes: mostMaskBytes });
  return { path, sql: sql?.toString() };
}

/** The settings in berth.json that affect the deployment; stored with the build. */
export type DeploymentSettings = Pick<BerthFile, "port" | "health_path" | "crons" | "rehearse">;
