import {
  removeControlPlane,
  saveControlPlane,
  type ControlPlane,
} from "../../features/control-planes/control-planes.ts";
import type { Task } from "../driver.ts";
import type { Platform } from "../platform.ts";

const periodMs = 2000;

/** Reports that this control plane lives, what it does and where the others reach it. Its end takes the report back. */
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
