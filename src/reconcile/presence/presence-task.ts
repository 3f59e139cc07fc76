import {
  removeControlPlane,
  saveControlPlane,
  type ControlPlane,
} from "../../features/control-planes/control-planes.ts";
import type { Task, Platform } from "../platform.ts";

const periodMs = 2000;

/** Reports that this control plane is running, its roles, and where others reach it. Removes the report when it stops. */
export function presenceTask({ db }: Platform, self: () => ControlPlane): Task {
  return {
    name: "presence",
    periodMs,
    topics: [],
    async run() {
      const plane = self();
      await saveControlPlane(db, plane);
      return { detail: plane.roles.join(", ") };
    },
    settle: () => removeControlPlane(db, self()),
  };
}
