// One page goes through all of it, in this order.
import "./dashboard-project.ts";
import "./dashboard-organization.ts";
import "./dashboard-frame.ts";
