/** The steps of a deploy, in their order. */
export const stages = ["receive", "detect", "install", "build", "release", "boot", "health", "switch"] as const;
export type Stage = (typeof stages)[number];

/** Why a build or deployment failed, for people: what happened, what to do, and the end of the log. */
export interface Failure {
  readonly stage: Stage;
  /** Stable and machine-readable, such as `install_failed` or `wrong_port`. */
  readonly code: string;
  readonly summary: string;
  readonly hint: string;
  readonly log_tail: readonly string[];
}
