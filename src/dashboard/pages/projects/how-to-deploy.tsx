import { Link } from "@tanstack/react-router";
import { buttonLook } from "../../ui/button.tsx";

/** Leads from an empty page to the project's overview, which has the commands that work for this project. */
export function HowToDeploy({ slug }: { readonly slug: string }) {
  return (
    <Link to="/projects/$slug" params={{ slug }} className={buttonLook("plain")}>
      How to deploy
    </Link>
  );
}
