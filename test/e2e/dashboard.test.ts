// Drawn with other journey files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
// All suites share one page, so their order matters.
import "./dashboard-project.ts";
import "./dashboard-organization.ts";
import "./dashboard-access.ts";
import "./dashboard-previews.ts";
import "./dashboard-logs.ts";
import "./dashboard-begin.ts";
import "./dashboard-frame.ts";
