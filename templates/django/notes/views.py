from django.shortcuts import redirect, render

from .models import Note


def notes(request):
    if request.method == "POST":
        Note.objects.create(text=request.POST.get("text", "")[:500])
        return redirect("/")
    return render(request, "notes.html", {"notes": Note.objects.order_by("-id")[:50]})
