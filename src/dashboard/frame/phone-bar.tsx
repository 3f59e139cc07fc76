import { useParams, useRouterState } from "@tanstack/react-router";
import { Menu } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { Brand } from "../ui/brand.tsx";
import { IconButton } from "../ui/button.tsx";
import { PhoneProject } from "./phone-project.tsx";
import { Sidebar } from "./sidebar.tsx";

/** A phone's only row above the page: the sidebar as a sheet, and the project with its pages as another. */
export function PhoneBar() {
  const [open, setOpen] = useState(false);
  const sheet = useRef<HTMLDialogElement>(null);
  const path = useRouterState({ select: (state) => state.location.pathname });
  const { slug } = useParams({ strict: false });
  useEffect(() => setOpen(false), [path]);
  useEffect(() => {
    if (open) sheet.current?.showModal();
    else sheet.current?.close();
  }, [open]);
  return (
    <header className="sticky top-0 z-20 flex h-12 items-center gap-2 border-b border-line bg-panel px-2 md:hidden">
      <IconButton label="Open the navigation" onClick={() => setOpen(true)}>
        <Menu size={18} />
      </IconButton>
      {slug === undefined ? (
        <>
          <Brand size={20} />
          <span className="font-semibold">Berth</span>
        </>
      ) : (
        <PhoneProject key={slug} slug={slug} />
      )}
      <dialog
        ref={sheet}
        aria-label="Navigation"
        onClose={() => setOpen(false)}
        onClick={(event) => event.target === sheet.current && setOpen(false)}
        className="m-0 h-dvh max-h-dvh w-72 border-r border-line bg-panel p-0 shadow-float"
      >
        {open && <Sidebar />}
      </dialog>
    </header>
  );
}
