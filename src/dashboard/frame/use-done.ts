import { useNavigate } from "@tanstack/react-router";
import type { OfProject } from "./actions.ts";

export type Place =
  | "deployments"
  | "processes"
  | "variables"
  | "domains"
  | "cron"
  | "database"
  | "backups"
  | "settings";

/** Closes the dialog and opens the page that shows the result. */
export function useDone({ slug, onClose }: OfProject): (to: Place) => void {
  const navigate = useNavigate();
  return (to) => {
    onClose();
    void navigate({ to: `/projects/$slug/${to}`, params: { slug } });
  };
}
