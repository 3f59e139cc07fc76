import type { CallInput } from "../../contract/client.ts";
import type { RouteName } from "../../contract/routes.ts";
import { ActionDialog } from "../ui/action-dialog.tsx";
import type { OfProject } from "./actions.ts";
import { useNavigate } from "@tanstack/react-router";

interface PlainAction<N extends RouteName> {
  readonly row: N;
  readonly title: (slug: string) => string;
  readonly submit: string;
  readonly input: (slug: string) => CallInput<N>;
  readonly text: string;
  readonly to: Place;
}

/** Creates the dialog of an action that needs nothing but its project. */
export function plainAction<N extends RouteName>({ title, input, text, to, ...rest }: PlainAction<N>) {
  return function PlainActionDialog(props: OfProject) {
    const { slug, onClose } = props;
    const done = useDone(props);
    return (
      <ActionDialog {...rest} title={title(slug)} input={() => input(slug)} onDone={() => done(to)} onClose={onClose}>
        <p className="text-sm text-muted">{text}</p>
      </ActionDialog>
    );
  };
}

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
