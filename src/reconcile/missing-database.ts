import type { Failure } from "../ports/failure.ts";

const hint = "This project has no database yet: `berth db create` creates one and sets DATABASE_URL. Then push again.";
const signs =
  /DATABASE_URL|ECONNREFUSED (?:127\.0\.0\.1|::1):5432|connection to server .* port 5432 failed|PrismaClientInitializationError|(?:could not|Can't) (?:connect|reach).*database/i;

// Failures of the project's own commands and processes, whose cause only their output names. Codes of other failures name it themselves.
const unexplained = [
  "install_failed",
  "build_script_failed",
  "dockerfile_step_failed",
  "release_failed",
  "release_timeout",
  "crash_on_boot",
  "exited_on_boot",
  "wrong_port",
  "not_listening",
  "health_check_failed",
  "health_check_timeout",
  "health_check_broken",
  "image_check_failed",
];

/** Returns the failure with the hint to create a database if the output shows that the missing one is the cause; otherwise unchanged. */
export function explainMissingDatabase(
  failure: Failure,
  { words, hasDatabase }: { readonly words: readonly string[]; readonly hasDatabase: boolean },
): Failure {
  if (hasDatabase || !unexplained.includes(failure.code) || !words.some((line) => signs.test(line))) return failure;
  return { ...failure, hint };
}
