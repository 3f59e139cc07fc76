// Drawn with other journey files: its rules are its own, and .ci/run shows them with every change.
// One page goes through all of it, in this order.
import "./dashboard-project.ts";
import "./dashboard-organization.ts";
import "./dashboard-access.ts";
import "./dashboard-frame.ts";
