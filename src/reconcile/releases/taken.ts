import type { TakenDeployment } from "../../features/deployments/deployments.ts";
import type { Lease } from "../../store/leases.ts";
import type { Platform } from "../platform.ts";

export interface Taken {
  readonly platform: Platform;
  readonly deployment: TakenDeployment;
  readonly lease: Lease;
}
