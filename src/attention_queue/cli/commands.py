"""The list of commands; each is loaded when it is called, and no sooner."""

from __future__ import annotations

from cyclopts import Group

RUN = Group("Run", sort_key=1)
LOOK = Group("Look", sort_key=2)
ACT = Group("Act", sort_key=3)
SET_UP = Group("Set up", sort_key=4)

_CLI = "attention_queue.cli"

# Name: where it is listed, the function, what it does.
COMMANDS = {
    "demo": (RUN, "markethub.demo:main", "Watch a thousand shops share a few workers."),
    "worker": (RUN, f"{_CLI}.worker:worker", "Serve the queues of an application."),
    "publish": (RUN, f"{_CLI}.publish:publish", "Publish one message, or many."),
    "status": (LOOK, f"{_CLI}.look:status", "Is the work being done?"),
    "top": (LOOK, f"{_CLI}.live:top", "The busiest resources, live."),
    "ls": (LOOK, f"{_CLI}.look:ls", "List resources: attn ls plan:pro backlog:>1000."),
    "show": (LOOK, f"{_CLI}.look:show", "Show one resource."),
    "explain": (LOOK, f"{_CLI}.look:explain", "Why is it (not) being served?"),
    "watch": (LOOK, f"{_CLI}.live:watch", "One resource, live."),
    "peek": (LOOK, f"{_CLI}.trail:peek", "Look at its messages."),
    "attention": (LOOK, f"{_CLI}.trail:attention", "Who is next, and who waits for what."),
    "events": (LOOK, f"{_CLI}.events:events", "What a worker does, as it does it."),
    "audit": (LOOK, f"{_CLI}.trail:audit", "Who changed what, and why."),
    "pause": (ACT, f"{_CLI}.states:pause", "Stop serving a resource, for a while or not."),
    "resume": (ACT, f"{_CLI}.states:resume", "Serve it again."),
    "maintenance": (ACT, f"{_CLI}.states:maintenance", "Pause it; it may refuse work meanwhile."),
    "disable": (ACT, f"{_CLI}.states:disable", "Stop serving it until somebody resumes it."),
    "nudge": (ACT, f"{_CLI}.states:nudge", "Ask for its attention now."),
    "boost": (ACT, f"{_CLI}.overrides:boost", "Serve it sooner for a while."),
    "discard": (ACT, f"{_CLI}.retire:discard", "Delete its backlog, or a part of it."),
    "retire": (ACT, f"{_CLI}.retire:retire", "Let it take no more work, ever."),
    "reconcile": (ACT, f"{_CLI}.trail:reconcile", "Find work nobody comes for; ask for it."),
    "doctor": (SET_UP, f"{_CLI}.doctor:doctor", "Look for what is wrong here."),
}
FAMILIES = {
    "dlq": (
        ACT,
        "Dead letters.",
        {
            "ls": (f"{_CLI}.letters:ls", "List them, or count them by error or resource."),
            "show": (f"{_CLI}.letters:show", "Show one whole."),
            "redrive": (f"{_CLI}.letters:redrive", "Send them back to work."),
            "discard": (f"{_CLI}.letters:discard", "Delete them for good."),
            "export": (f"{_CLI}.letters:export", "Write them out as NDJSON."),
        },
    ),
    "plan": (
        ACT,
        "Plans: the limits that resources are served by.",
        {
            "ls": (f"{_CLI}.plans:ls", "List them, and who feels them now."),
            "show": (f"{_CLI}.plans:show", "Show one."),
            "set": (
                f"{_CLI}.plans:set",
                "Change fields of one: attn plan set pro max_consumers=6.",
            ),
            "apply": (f"{_CLI}.plans:apply", "Make them be as a file says."),
            "use": (f"{_CLI}.plans:use", "Put a resource on one."),
        },
    ),
    "override": (
        ACT,
        "Other limits for one resource, for a while.",
        {
            "ls": (f"{_CLI}.overrides:ls", "List a resource's overrides."),
            "add": (f"{_CLI}.overrides:add", "Add one, with a window or without."),
            "rm": (f"{_CLI}.overrides:rm", "Take one away."),
        },
    ),
    "op": (
        ACT,
        "Operations: redrives, discards and retirements.",
        {
            "ls": (f"{_CLI}.ops:ls", "List them."),
            "show": (f"{_CLI}.ops:show", "Show how far one has come."),
            "cancel": (f"{_CLI}.ops:cancel", "End one; what is done stays done."),
        },
    ),
    "token": (
        ACT,
        "Tokens: who serves what at this moment.",
        {
            "ls": (f"{_CLI}.tokens:ls", "List those that are out."),
            "release": (f"{_CLI}.tokens:release", "Free a dead holder's before its lease ends."),
        },
    ),
    "config": (
        SET_UP,
        "The settings.",
        {"show": (f"{_CLI}.settings:show", "Show the settings that are in force.")},
    ),
    "db": (
        SET_UP,
        "The database.",
        {
            "migrate": (f"{_CLI}.db:migrate", "Make it, or bring it up to date."),
            "status": (f"{_CLI}.db:status", "Show the version of its schema."),
            "sql": (f"{_CLI}.db:sql", "Print the scripts that make its schema."),
        },
    ),
}
