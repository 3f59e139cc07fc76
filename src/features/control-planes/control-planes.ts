export {
  claimPrimary,
  findPrimary,
  liveControlPlanes,
  removeControlPlane,
  saveControlPlane,
  type ControlPlane,
  type Primary,
} from "./queries.ts";
