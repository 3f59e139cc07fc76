import { Link } from "@tanstack/react-router";
import { LayoutGrid, LogOut } from "lucide-react";
import type { ReactNode } from "react";
import { useCall } from "../data/api.ts";
import { useMe } from "../data/me.ts";
import { signOut } from "../data/session.ts";
import { Brand } from "../ui/brand.tsx";
import { IconButton } from "../ui/button.tsx";
import { Dot } from "../ui/status.tsx";
import { Plain } from "../ui/text.tsx";
import { standOf } from "./stand.ts";
import { ThemeButton } from "./theme-button.tsx";

const mostProjects = 30;

export function Sidebar() {
  const me = useMe();
  const { data } = useCall("overview.get", {});
  const projects = data?.projects.filter((project) => project.state === "active") ?? [];
  return (
    <div className="flex h-full flex-col">
      <div className="flex items-center gap-2.5 px-4 pt-4 pb-3">
        <Brand />
        <div className="min-w-0 leading-4">
          <p className="font-semibold">Berth</p>
          <p className="truncate text-xs text-faint">
            <Plain>{me.organization.name}</Plain>
          </p>
        </div>
      </div>
      <nav aria-label="Main" className="flex min-h-0 flex-1 flex-col gap-px overflow-y-auto px-2 pb-3">
        <Item to="/" icon={<LayoutGrid size={15} />} exact>
          Overview
        </Item>
        {projects.slice(0, mostProjects).map((project) => (
          <Link
            key={project.id}
            to="/projects/$slug"
            params={{ slug: project.slug }}
            className={`${item} pl-8`}
            activeProps={{ className: chosen }}
          >
            <Dot tone={standOf(project).tone} />
            <span className="truncate">{project.slug}</span>
          </Link>
        ))}
      </nav>
      <footer className="flex items-center gap-1 border-t border-line py-2 pr-2 pl-4">
        <div className="min-w-0 flex-1 leading-4">
          <p className="truncate text-sm">
            <Plain>{me.token.name}</Plain>
          </p>
          <p className="text-xs text-faint">{me.platform_admin ? "operator" : me.role}</p>
        </div>
        <ThemeButton />
        <IconButton label="Sign out" onClick={() => void signOut()}>
          <LogOut size={15} />
        </IconButton>
      </footer>
    </div>
  );
}

const item =
  "flex h-8 items-center gap-2.5 rounded-md px-2.5 text-sm text-muted transition-colors hover:bg-hover hover:text-text max-md:h-11";
const chosen = "bg-selected text-text font-medium";

interface ItemProps {
  readonly to: "/";
  readonly icon: ReactNode;
  readonly exact?: boolean;
  readonly children: ReactNode;
}

function Item({ to, icon, exact = false, children }: ItemProps) {
  return (
    <Link to={to} activeOptions={{ exact }} className={item} activeProps={{ className: chosen }}>
      {icon}
      {children}
    </Link>
  );
}
