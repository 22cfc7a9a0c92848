"""Right and wrong claims, and questions, made from the sentences of a passage by rules.

Every function takes a `random.Random`, so a fresh sample is drawn each time. `rewrite` changes words but not the
meaning; `mutate` changes the meaning and says which characters it touched; `ask` turns a sentence into a question.
The grammar is rough on purpose: the reader must look at the content, not at the style.
"""
import re

# ---- word lists ----------------------------------------------------------------------------------------------------

ANTONYMS = """
before/after enabled/disabled enable/disable enables/disables increase/decrease increases/decreases increased/decreased
first/last true/false True/False on/off yes/no always/never more/less most/least larger/smaller greater/smaller larger/lower
higher/lower maximum/minimum max/min start/stop starts/stops started/stopped begin/end begins/ends open/close opens/closes
opened/closed allow/forbid allows/forbids allowed/forbidden allowed/prohibited accept/reject accepts/rejects accepted/rejected
add/remove adds/removes added/removed adding/removing include/exclude includes/excludes included/excluded including/excluding
with/without above/below over/under inside/outside internal/external local/remote public/private global/local
synchronous/asynchronous synchronously/asynchronously explicit/implicit explicitly/implicitly mutable/immutable static/dynamic
statically/dynamically possible/impossible required/optional mandatory/optional needed/unnecessary necessary/unnecessary
success/failure succeeds/fails succeed/fail successful/unsuccessful successfully/unsuccessfully pass/fail passes/fails
upper/lower left/right top/bottom high/low long/short longer/shorter fast/slow faster/slower easy/hard easier/harder
simple/complex simpler/harder safe/unsafe safer/riskier same/different identical/different equal/unequal valid/invalid
visible/hidden show/hide shows/hides shown/hidden old/new older/newer early/late earlier/later front/back input/output
read/write reads/writes reading/writing readable/writable send/receive sends/receives sent/received sender/receiver
client/server parent/child parents/children ancestor/descendant source/target source/destination upload/download
lock/unlock locks/unlocks locked/unlocked encode/decode encodes/decodes encrypt/decrypt serialize/deserialize
import/export imports/exports install/uninstall installed/uninstalled create/delete creates/deletes created/deleted
creating/deleting push/pull automatic/manual automatically/manually temporary/permanent temporarily/permanently
strong/weak stable/unstable known/unknown present/absent empty/full online/offline many/few best/worst better/worse good/bad
positive/negative prefix/suffix row/column rows/columns horizontal/vertical horizontally/vertically ascending/descending
forward/backward forwards/backwards single/multiple one/several both/neither all/none everything/nothing everyone/nobody
anything/nothing common/rare commonly/rarely often/rarely frequently/rarely usually/rarely ordered/unordered sorted/unsorted
signed/unsigned raise/suppress raises/suppresses ignore/respect ignores/respects ignored/respected keep/discard keeps/discards
kept/discarded save/discard saves/discards merge/split connect/disconnect connected/disconnected load/unload
faster/slower cheap/expensive cheaper/costlier heavy/light wide/narrow deep/shallow outer/inner backend/frontend
hardware/software compile/run compile-time/runtime debug/release development/production lowercase/uppercase
case-sensitive/case-insensitive recommended/discouraged supported/unsupported deprecated/recommended used/unused
encouraged/discouraged improves/worsens improve/worsen prevents/causes prevent/cause preventing/causing avoid/cause avoids/causes
extends/restricts extend/restrict gain/lose gains/loses win/lose wins/loses rise/fall rises/falls rose/fell north/south east/west
northern/southern eastern/western war/peace enemy/ally victory/defeat male/female men/women largest/smallest highest/lowest
majority/minority oldest/newest earliest/latest union/separation supporters/opponents supported/opposed support/oppose
""".split()
ANT = {}
for _pair in ANTONYMS:
    _a, _b = _pair.split("/")
    ANT.setdefault(_a, []).append(_b)
    ANT.setdefault(_b, []).append(_a)

MODAL = [("may", "must"), ("must", "may"), ("can", "must"), ("should", "may"), ("should", "must not"), ("can", "cannot"),
         ("must", "need not"), ("have to", "can"), ("has to", "may"), ("some", "all"), ("some", "no"), ("all", "some"), ("all", "no"),
         ("every", "no"), ("every", "only one"), ("each", "only the first"), ("any", "no"), ("many", "all"), ("most", "all"),
         ("usually", "always"), ("often", "always"), ("sometimes", "always"), ("sometimes", "never"), ("always", "sometimes"),
         ("generally", "always"), ("typically", "always"), ("might", "will always"), ("may", "will always"), ("only", "also"),
         ("at least", "at most"), ("at most", "at least"), ("at least", "exactly"), ("up to", "at least"), ("or", "and"),
         ("more than", "less than"), ("less than", "more than"), ("by default", "only on request"), ("optionally", "necessarily"),
         ("either", "neither"), ("unless", "if"), ("until", "after"), ("instead of", "together with"), ("rather than", "as well as"),
         ("not only", "only"), ("except", "including"), ("as well as", "but not"), ("if", "even if"), ("is", "is no longer"),
         ("recommended", "required"), ("similar to", "different from"), ("depends on", "is independent of"), ("even if", "unless")]

UNITS = ["seconds minutes hours days weeks months years milliseconds microseconds", "second minute hour day week month year millisecond",
         "ms s min", "bytes kilobytes megabytes gigabytes bits", "KB MB GB TB", "KiB MiB GiB", "Hz kHz MHz GHz",
         "meters centimeters millimeters kilometers", "mm cm km", "percent degrees", "degrees radians", "characters bytes lines words",
         "files folders", "files directories", "rows columns", "threads processes", "million billion", "century decade"]
UNIT = {}
for _group in UNITS:
    for _w in _group.split():
        UNIT.setdefault(_w, [x for x in _group.split() if x != _w])

NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
ORDINALS = "first second third fourth fifth".split()
MONTHS = "January February March April May June July August September October November December".split()

SYNONYMS = """
use/employ/utilize uses/employs/utilizes used/employed/utilized using/employing show/display shows/displays shown/displayed
create/make/build/set_up creates/makes/builds created/made/built creating/making/building start/begin/launch starts/begins/launches
started/launched stop/halt stops/halts delete/remove/erase deletes/removes/erases deleted/removed/erased get/obtain/retrieve/fetch
gets/obtains/retrieves returns/gives_back/yields return/give_back/yield returned/given_back need/require needs/requires
needed/required allows/lets/permits/enables allow/let/permit/enable contains/holds/includes contain/hold/include contained/held
change/alter/modify changes/alters/modifies changed/altered/modified choose/pick/select chooses/picks/selects chosen/picked/selected
run/execute runs/executes running/executing called/named/known_as method/function/routine methods/functions argument/parameter
arguments/parameters directory/folder directories/folders file/document error/failure errors/failures big/large/sizable
bigger/larger small/little/tiny smaller/tinier fast/quick/rapid faster/quicker quickly/rapidly/fast however/but/yet
therefore/thus/so/hence because/since/as also/too/as_well automatically/by_itself/on_its_own automatically/without_your_doing_anything
default/standard/preset option/setting/switch options/settings/switches specify/give/state specifies/gives/states
specified/given/stated provide/supply/offer provides/supplies/offers provided/supplied/offered several/multiple/a_number_of
multiple/several/more_than_one many/numerous/lots_of often/frequently usually/normally/typically/as_a_rule only/just/solely
important/essential/crucial easy/simple/straightforward easier/simpler difficult/hard/tricky correct/right/proper wrong/incorrect
check/verify/test checks/verifies/tests checked/verified/tested find/locate/discover finds/locates found/located
send/transmit sends/transmits sent/transmitted wait/pause waits/pauses keep/retain/preserve keeps/retains/preserves kept/retained
write/put_down ensure/make_sure/guarantee ensures/makes_sure/guarantees handle/deal_with/process handles/deals_with/processes
handled/dealt_with/processed happen/occur/take_place happens/occurs/takes_place avoid/prevent avoids/prevents
must/has_to/needs_to must/have_to can/is_able_to can/are_able_to should/ought_to cannot/can_not/is_unable_to might/may/could
each/every all/all_of_the every/each whole/entire entire/whole before/prior_to after/once after/following until/till
if/in_case/provided_that when/whenever/as_soon_as in_order_to/to for_example/e.g./such_as such_as/like/for_example
same/identical different/distinct/other new/fresh current/present/existing following/next previous/earlier/preceding
additional/extra/further extra/additional part/piece/portion parts/pieces/portions kind/type/sort kinds/types/sorts
type/kind value/content values/contents number/count/amount list/enumeration name/title way/manner/means approach/method
problem/issue/trouble problems/issues user/person users/people developer/programmer developers/programmers program/application
application/app/program applications/apps/programs computer/machine machine/computer system/platform package/library
library/package libraries/packages code/source_code command/instruction example/sample examples/samples page/document
information/data/details data/information result/outcome results/outcomes goal/aim/purpose purpose/goal/aim reason/cause
advantage/benefit advantages/benefits begin/start end/finish/conclude ends/finishes help/assist/aid helps/assists/aids
try/attempt tries/attempts attempt/try attempts/tries support/back supports/works_with define/declare defines/declares
defined/declared describe/explain describes/explains described/explained mean/signify means/signifies/indicates
indicate/signal indicates/signals/tells_you consider/regard considered/regarded_as place/put places/puts placed/put
move/shift moves/shifts store/save/keep stores/saves/keeps stored/saved/kept read/load reads/loads
download/fetch update/refresh/bring_up_to_date updates/refreshes updated/refreshed improve/better/enhance improves/enhances
increase/raise/grow increases/raises/grows reduce/lower/cut reduces/lowers/cuts reduced/lowered/cut limit/restrict
limits/restricts limited/restricted ignore/skip/disregard ignores/skips/disregards ignored/skipped/disregarded
raise/throw raises/throws raised/thrown invoke/call invokes/calls invoked/called call/invoke calls/invokes
enabled/turned_on/active/switched_on disabled/turned_off/inactive/switched_off enable/turn_on/activate/switch_on
disable/turn_off/deactivate/switch_off enables/turns_on/activates disables/turns_off/deactivates optional/not_required/not_mandatory
required/mandatory/obligatory possible/feasible recommended/advised/suggested recommend/advise/suggest recommends/advises
equal_to/the_same_as consists_of/is_made_up_of consist_of/are_made_up_of depends_on/is_determined_by based_on/built_on
instead_of/in_place_of/rather_than rather_than/instead_of due_to/because_of/owing_to because_of/due_to at_least/no_fewer_than/a_minimum_of
at_most/no_more_than/a_maximum_of more_than/over/above less_than/under/below about/roughly/approximately/around
approximately/roughly/about as_well_as/and/along_with without/with_no with_the_help_of/using/by_means_of by_default/unless_told_otherwise/if_nothing_else_is_set
is_not/isn't are_not/aren't does_not/doesn't do_not/don't cannot/can't will_not/won't should_not/shouldn't was_not/wasn't
isn't/is_not aren't/are_not doesn't/does_not don't/do_not can't/cannot won't/will_not you'll/you_will it's/it_is you're/you_are
war/conflict king/ruler/monarch died/passed_away born/delivered country/nation/state countries/nations city/town people/inhabitants
located/situated/found founded/established/set_up established/founded created/established led/headed/directed killed/slain
began/started ended/finished became/turned_into wrote/authored built/constructed major/main/principal main/chief/principal
primary/main famous/well-known/renowned known_as/called powerful/mighty ancient/old law/legislation government/administration
""".split()
SYN = {}
for _line in SYNONYMS:
    _words = [w.replace("_", " ") for w in _line.split("/")]
    SYN.setdefault(_words[0], []).extend(_words[1:])
SYN_KEYS = re.compile(r"(?<![\w`'-])(" + "|".join(sorted(map(re.escape, SYN), key=len, reverse=True)) + r")(?![\w`'-])")

# Verbs as base, third person, past participle: for passives and negation.
VERBS = {}
for _v in """use uses used|provide provides provided|create creates created|return returns returned|call calls called|run runs run
define defines defined|handle handles handled|contain contains contained|require requires required|allow allows allowed
support supports supported|store stores stored|read reads read|write writes written|send sends sent|receive receives received
generate generates generated|control controls controlled|set sets set|specify specifies specified|determine determines determined
execute executes executed|manage manages managed|load loads loaded|raise raises raised|describe describes described
implement implements implemented|update updates updated|replace replaces replaced|add adds added|remove removes removed
delete deletes deleted|check checks checked|include includes included|give gives given|take takes taken|make makes made
show shows shown|print prints printed|start starts started|stop stops stopped|install installs installed|build builds built
parse parses parsed|represent represents represented|own owns owned|follow follows followed|enable enables enabled
disable disables disabled|configure configures configured|trigger triggers triggered|produce produces produced|compile compiles compiled
accept accepts accepted|pass passes passed|need needs needed|keep keeps kept|open opens opened|close closes closed|expect expects expected
publish publishes published|cause causes caused|override overrides overridden|ignore ignores ignored|process processes processed
mean means meant|work works worked|help helps helped|change changes changed|convert converts converted|find finds found
apply applies applied|affect affects affected|depend depends depended|consist consists consisted|indicate indicates indicated
hold holds held|let lets let|perform performs performed|prevent prevents prevented|ensure ensures ensured|exist exists existed
belong belongs belonged|appear appears appeared|become becomes become|offer offers offered|share shares shared""".replace("\n", "|").split("|"):
    _b, _t, _p = _v.split()
    VERBS[_b] = VERBS[_t] = (_b, _t, _p)
PARTICIPLE = {v[2]: v for v in VERBS.values()}
THIRD = re.compile(r"\b(" + "|".join({v[1] for v in VERBS.values()}) + r")\b")
PLURAL_BASE = re.compile(r"\b(\w+s|you|You|we|We|they|They) (" + "|".join({v[0] for v in VERBS.values()}) + r")\b")
AUX = re.compile(r"\b(is|are|was|were|can|will|should|must|may|could|would|does|do|has been|have been)\b(?! not|n't)")
NAME = re.compile(r"(?<![.!?:] )(?<!^)\b([A-Z][A-Za-z0-9+.#]*[A-Za-z0-9+#](?: [A-Z][A-Za-z0-9]+)*)\b")
CODE = re.compile(r"`[^`\n]{1,60}`")
NUM = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?![\w])")
WORD = re.compile(r"[A-Za-z][A-Za-z'-]{3,}")
STOP = set("""the and that this with from have which when will your there their they them then than what where while would could should
into also been being does each such only some more most other these those because about after before over under very just here
were must many like used using make made between both same through during without within upon onto itself himself""".split())
EXTRAS = ["in less than {n} seconds", "since version {v}", "only on Windows", "only on Linux", "on Linux and macOS", "up to {n} times", "for security reasons",
          "to save memory", "at most {n} times", "once a day", "every {n} minutes", "with {e}", "in {e}", "together with {e}", "and {e}",
          "after a delay of {n} seconds", "in a separate process", "in a background thread", "for historical reasons", "for better performance",
          "and writes the result to a log file", "and prints a warning", "and sends an e-mail", "and this is cached", "in alphabetical order",
          "unless {e} is set", "if the user has administrator rights", "in about {n} percent of the cases", "before {e} is called",
          "as was decided in {y}", "which was introduced in {y}", "at no extra cost", "and needs {n} MB of memory", "and at least {n} of them",
          "by sending a signal", "with the help of a plugin", "except on weekends", "and is twice as fast", "for compatibility with older versions",
          "through the web interface", "and the network must be available", "which takes about {n} ms", "in the same directory", "and restarts afterwards"]
PREFIXES = ["According to the book, ", "The book says that ", "As described there, ", "In short, ", "The text says that ", "It is stated that ",
            "In other words, ", "Note that ", "In this case, ", "Here, "]


def lower_first(text):
    return text[:1].lower() + text[1:] if len(text) > 1 and not text[1].isupper() and text[0] != "I" else text


def upper_first(text):
    return text[:1].upper() + text[1:]


def choice(rng, items):
    return items[int(rng.random() * len(items))]


# ---- rewriting that keeps the meaning ----------------------------------------------------------------------------------

def synonyms(text, rng, share):
    def swap(m):
        return choice(rng, SYN[m.group(1)]) if rng.random() < share else m.group(0)
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else SYN_KEYS.sub(swap, p) for p in pieces)


def reorder(text, rng):
    """If A, B. <-> B if A.  To A, B. <-> B to A."""
    m = re.match(r"^(If|When|Once|Before|After|Because|While|To|In order to|Unless|By|Since|Although|With|For|In|On) ([^,]{5,120}), (.{8,})([.!])$", text)
    if m:
        return f"{upper_first(m.group(3))} {m.group(1).lower()} {m.group(2)}{m.group(4)}"
    m = re.match(r"^(.{12,}?),? (if|when|once|before|after|because|while|unless|by|although) ([^,]{8,})([.!])$", text)
    if m:
        return f"{upper_first(m.group(2))} {m.group(3)}, {lower_first(m.group(1))}{m.group(4)}"
    m = re.match(r"^(?:You can use|Use|You use) (.{2,60}?) to (.{5,})([.!:])$", text)
    if m:
        return choice(rng, [f"To {m.group(2)}, use {m.group(1)}{m.group(3)}", f"{upper_first(m.group(1))} lets you {m.group(2)}{m.group(3)}",
                            f"{upper_first(m.group(1))} is used to {m.group(2)}{m.group(3)}"])
    return None


def passive(text, rng):
    m = re.match(r"^(.{3,60}?) (is|are|was|were) (\w+) by (.{3,60}?)([.!])$", text)
    if m and m.group(3) in PARTICIPLE:
        return f"{upper_first(m.group(4))} {PARTICIPLE[m.group(3)][1]} {lower_first(m.group(1))}{m.group(5)}"
    m = re.match(r"^((?:\S+ ){1,4}?)(\w+) ((?:a|an|the|all|every|each|your|its|`)\S* ?.{2,60}?)([.!])$", text)
    if m and m.group(2) in VERBS and VERBS[m.group(2)][1] == m.group(2):
        return f"{upper_first(m.group(3))} is {VERBS[m.group(2)][2]} by {lower_first(m.group(1).strip())}{m.group(4)}"
    return None


def shorten(text, rng):
    """Leaves out what can go without making the sentence false."""
    t = re.sub(r"\s*\((?!s\))[^()]{3,80}\)", "", text) if rng.random() < .7 else text
    t = re.sub(r"^(However|Therefore|Thus|Also|In addition|Additionally|For example|For instance|Note that|Note|Similarly|Finally|Moreover|Furthermore|"
               r"As a result|Of course|In fact|Then|Next|So|And|But|Instead)[,:]? ", "", t)
    t = re.sub(r", (?:which|for example|such as|e\.g\.|so that|thus|where|especially|including|for instance) [^,]{5,120}([.!])$", r"\1", t)
    t = re.sub(r"\b(very|simply|just|really|easily|basically|actually|quite|of course|in fact|then|also) ", "", t)
    return upper_first(t) if t != text else None


def rephrase(text, rng):
    t = text
    t = re.sub(r"^You can ", lambda m: choice(rng, ["It is possible to ", "One can ", "You are able to ", "You may "]), t)
    t = re.sub(r"^You should ", lambda m: choice(rng, ["It is recommended to ", "It is best to ", "One should "]), t)
    t = re.sub(r"^(?:You must|You need to|You have to) ", lambda m: choice(rng, ["It is necessary to ", "One has to ", "You have to ", "You need to "]), t)
    t = re.sub(r"\ballows? you to ", lambda m: choice(rng, ["lets you ", "makes it possible to "]), t)
    t = re.sub(r"\bis used to ", lambda m: choice(rng, ["serves to ", "helps to ", "is there to "]), t)
    t = re.sub(r"\bis an? (\w+) (?:that|which) ", lambda m: choice(rng, [m.group(0), f"is the {m.group(1)} that "]), t)
    t = re.sub(r"\b(is|are) not (\w+)\b", lambda m: f"{m.group(1)} {choice(rng, ANT[m.group(2)])}"
               if m.group(2) in ("enabled", "disabled", "possible", "required", "allowed", "visible", "valid", "safe", "mutable", "known", "supported", "empty")
               else m.group(0), t)
    t = re.sub(r"(?<![\w.`])(\d{1,2})(?![\w.`%])", lambda m: NUMBER_WORDS[int(m.group(1))] if int(m.group(1)) <= 12 and rng.random() < .7 else m.group(1), t)
    m = re.search(r"(`[^`]+`), (`[^`]+`),? and (`[^`]+`)", t)
    if m:
        t = t.replace(m.group(0), f"{m.group(3)}, {m.group(1)} and {m.group(2)}")
    m = re.search(r"(`[^`]+`|\b\w+) and (`[^`]+`|\w+\b)(?=[ .,])", t)
    if m and m.group(1)[0] == "`" and m.group(2)[0] == "`" and "respectively" not in t:
        t = t.replace(m.group(0), f"{m.group(2)} and {m.group(1)}")
    return t if t != text else None


def subject(text, heading, rng):
    """Puts the heading in place of a pronoun at the beginning."""
    leaf = heading.split(" > ")[-1].strip("` ")
    if not leaf or len(leaf.split()) > 6:
        return None
    m = re.match(r"^(It|This|They|These|This \w+|The \w+) (is|are|can|has|have|will|was|means|does|allows|provides|makes|lets|uses|must|should|may)\b", text)
    return leaf + text[m.end(1):] if m else None


def rewrite(text, heading, rng, strength=1.0):
    """The same statement in other words, as far as rules go."""
    for step, chance in ((shorten, .5), (reorder, .45), (rephrase, .6), (passive, .5)):
        if rng.random() < chance * strength:
            text = step(text, rng) or text
    if rng.random() < .5 * strength:
        text = subject(text, heading, rng) or text
    if rng.random() < .8 * strength:
        text = synonyms(text, rng, choice(rng, [.2, .5, .8]))
    r = rng.random()
    if r < .08 * strength:
        text = choice(rng, PREFIXES) + lower_first(text)
    elif r < .14 * strength:
        text = f"In {heading.split(' > ')[-1]}, {lower_first(text)}"
    if rng.random() < .25 * strength:
        text = text.replace("`", "")
    if rng.random() < .08:
        text = text.lower()
    if rng.random() < .1:
        text = text.rstrip(".:!")
    return text


# ---- changing the meaning -------------------------------------------------------------------------------------------------
# A change is (text, start, end, label) with label 1 contradicted, 2 not mentioned, 3 one of both.

def put(text, a, b, new, label):
    return text[:a] + new + text[b:], a, a + len(new), label


def change_number(text, ctx, rng):
    found = list(NUM.finditer(text))
    words = [m for m in re.finditer(r"\b(" + "|".join(NUMBER_WORDS[2:] + ORDINALS + MONTHS + ["twice", "once", "half", "double", "both"]) + r")\b", text)]
    if words and (not found or rng.random() < .4):
        m = choice(rng, words)
        w = m.group(1)
        group = NUMBER_WORDS[1:] if w in NUMBER_WORDS else ORDINALS + ["last"] if w in ORDINALS else MONTHS if w in MONTHS else \
            ["once", "twice", "three times"] if w in ("once", "twice") else ["all", "none", "three"] if w == "both" else ["half", "double", "a third of"]
        return put(text, *m.span(), choice(rng, [g for g in group if g != w]), 1)
    if not found:
        return None
    m = choice(rng, found)
    old = m.group(0)
    others = [n for n in ctx["numbers"] if n != old]
    if others and rng.random() < .35:
        new = choice(rng, others)
    elif "." in old or "," in old:
        i = choice(rng, [k for k, c in enumerate(old) if c.isdigit()])
        new = old[:i] + str((int(old[i]) + 1 + int(rng.random() * 8)) % 10) + old[i + 1:]
    else:
        n = int(old)
        new = str(choice(rng, [n + 1, max(0, n - 1), n * 2, n * 10, n + 10, n // 2, n + 100, int(str(n)[::-1]), n + int(rng.random() * 20) + 1]))
    return put(text, *m.span(), new, 1) if new != old else None


def change_unit(text, ctx, rng):
    found = [m for m in re.finditer(r"\b[A-Za-z]+\b", text) if m.group(0) in UNIT and (len(m.group(0)) > 3 or text[m.start() - 2:m.start() - 1].isdigit())]
    if not found:
        return None
    m = choice(rng, found)
    return put(text, *m.span(), choice(rng, UNIT[m.group(0)]), 1)


def change_negation(text, ctx, rng):
    found = list(re.finditer(r" not\b|n't\b|\b[Nn]ever |\bcannot\b|\b[Nn]o (?=\w)", text))
    if found and rng.random() < .75:
        m = choice(rng, found)
        w = m.group(0)
        new = {"cannot": "can", "never ": "always ", "Never ": "Always ", "no ": "a ", "No ": "A "}.get(w, "")
        t, a, b, label = put(text, *m.span(), new, 1)
        return t, max(0, a - 5), max(b, a + 3), label
    found = list(AUX.finditer(text))
    verbs = list(THIRD.finditer(text))
    base = list(PLURAL_BASE.finditer(text))
    options = (["aux"] if found else []) + (["verb"] if verbs else []) + (["base"] if base else [])
    if not options:
        m = re.match(r"^[A-Z][a-z]+ ", text)
        return put(text, 0, 1, choice(rng, ["Do not ", "Never ", "There is no need to "]) + text[0].lower(), 1) if m and m.group(0).strip().lower() in VERBS else None
    kind = choice(rng, options)
    if kind == "aux":
        m = choice(rng, found)
        return put(text, *m.span(), m.group(1) + choice(rng, [" not", " not", " never", "n't" if m.group(1) not in ("may", "can", "will") else " not"]), 1)
    if kind == "verb":
        m = choice(rng, verbs)
        return put(text, *m.span(), choice(rng, ["does not ", "doesn't ", "never "]) + VERBS[m.group(1)][0], 1)
    m = choice(rng, base)
    return put(text, *m.span(2), choice(rng, ["do not ", "don't ", "never ", "cannot "]) + m.group(2), 1)


def change_antonym(text, ctx, rng):
    found = [m for m in re.finditer(r"(?<![\w`-])[A-Za-z-]+(?![\w`-])", text) if m.group(0) in ANT or m.group(0).lower() in ANT]
    if not found:
        return None
    m = choice(rng, found)
    w = m.group(0)
    new = choice(rng, ANT[w]) if w in ANT else upper_first(choice(rng, ANT[w.lower()]))
    return put(text, *m.span(), new, 1)


def change_entity(text, ctx, rng):
    pattern, pool, wide = (CODE, ctx["codes"], ctx["book_codes"]) if CODE.search(text) and rng.random() < .7 else (NAME, ctx["names"], ctx["book_names"])
    found = list(pattern.finditer(text))
    if not found:
        return None
    m = choice(rng, found)
    old = m.group(0)
    inside = [x for x in found if x.group(0) != old]
    if inside and rng.random() < .45:  # two names of the sentence change places
        o = choice(rng, inside)
        a, b = sorted((m, o), key=lambda x: x.start())
        return text[:a.start()] + b.group(0) + text[a.end():b.start()] + a.group(0) + text[b.end():], a.start(), b.end(), 1
    others = [x for x in pool if x.strip("`") not in text]
    if others and rng.random() < .75:
        return put(text, *m.span(), choice(rng, others), 3)
    others = [x for x in wide if x.strip("`") not in text]
    return put(text, *m.span(), choice(rng, others), 2 if rng.random() < .0 else 3) if others else None


def change_modal(text, ctx, rng):
    found = [(m, new) for old, new in MODAL for m in [re.search(r"(?<![\w`])" + old + r"(?![\w`])", text)] if m]
    if not found:
        return None
    m, new = choice(rng, found)
    return put(text, *m.span(), new, 1)


def change_condition(text, ctx, rng):
    """Leaves out the condition and says 'always', or drops 'only'."""
    m = re.match(r"^(.{12,}?),? (if|when|unless|only if|only when|provided that|as long as|except|until) .{6,}?([.!])$", text)
    if m and rng.random() < .7:
        body = m.group(1)
        new = choice(rng, [" in every case", " under all circumstances", " at any time", " no matter what", " without exception"])
        return body + new + m.group(3), len(body), len(body) + len(new), 1
    m = re.match(r"^(If|When|Unless) [^,]{5,120}, (.{8,})$", text)
    if m:
        new = choice(rng, ["In every case, ", "Always, ", "Under all circumstances, ", "No matter what, "])
        return new + lower_first(m.group(2)), 0, len(new), 1
    return None


def change_order(text, ctx, rng):
    """Cause and effect, from and to, doer and done change places."""
    m = re.match(r"^(.{10,}?) (because|so that|before|after|instead of|rather than|depends on|is faster than|is a subset of) (.{8,}?)([.!])$", text)
    if m:
        t = f"{upper_first(m.group(3))} {m.group(2)} {lower_first(m.group(1))}{m.group(4)}"
        return t, 0, len(t), 1
    m = re.search(r"\bfrom (\S+(?: \S+)?) to (\S+(?: \S+)?)\b", text)
    if m and m.group(1) != m.group(2):
        return put(text, *m.span(), f"from {m.group(2)} to {m.group(1)}", 1)
    m = re.match(r"^(.{3,60}?) (is|are|was|were) (\w+) by (.{3,60}?)([.!])$", text)
    if m and m.group(3) in PARTICIPLE:
        return f"{upper_first(m.group(4))} {m.group(2)} {m.group(3)} by {lower_first(m.group(1))}{m.group(5)}", 0, len(text), 1
    m = re.match(r"^((?:\S+ ){1,4}?)(\w+) ((?:a|an|the|all|every|each|your|its|`)\S* ?.{2,60}?)([.!])$", text)
    if m and m.group(2) in VERBS and VERBS[m.group(2)][1] == m.group(2):
        return f"{upper_first(m.group(3))} {m.group(2)} {lower_first(m.group(1).strip())}{m.group(4)}", 0, len(text), 1
    return None


def change_extra(text, ctx, rng):
    new = choice(rng, EXTRAS)
    entity = choice(rng, ctx["book_codes"]) if ctx["book_codes"] else "a plugin"
    if ctx["codes"] and rng.random() < .4:
        entity = choice(rng, ctx["codes"])
    new = " " + new.format(n=choice(rng, [2, 3, 5, 8, 10, 15, 20, 30, 50, 60, 100, 500]), v=f"{int(rng.random()*9)+1}.{int(rng.random()*12)}",
                           e=entity, y=int(rng.random() * 40) + 1985)
    if rng.random() < .3:
        new = "," + new
    body = text.rstrip(".!: ")
    return body + new + ("." if text.endswith(".") else ""), len(body), len(body) + len(new), 2


def change_word(text, ctx, rng):
    """Any word of weight gives way to another one of the passage or the book."""
    found = [m for m in WORD.finditer(text) if m.group(0).lower() not in STOP]
    if not found:
        return None
    m = choice(rng, found)
    old = m.group(0)
    pool = ctx["words"] if rng.random() < .6 else ctx["book_words"]
    ending = old[-2:]
    near = [w for w in pool if w.lower()[-2:] == ending and w.lower()[:4] != old.lower()[:4] and w not in text]
    if not near:
        near = [w for w in pool if w not in text and w.lower()[:4] != old.lower()[:4]]
    if not near or any(choice_word == old for choice_word in near):
        return None
    return put(text, *m.span(), choice(rng, near), 3)


CHANGES = [(change_number, 3), (change_unit, 2), (change_negation, 3), (change_antonym, 3), (change_entity, 3), (change_modal, 2),
           (change_condition, 1.2), (change_order, 1.2), (change_extra, 1.5), (change_word, 2)]
TOTAL = sum(w for _, w in CHANGES)


def mutate(text, ctx, rng, tries=6, extra=True):
    """A statement with another meaning: (text, [(start, end)], label), or None."""
    for _ in range(tries):
        r = rng.random() * TOTAL
        for rule, weight in CHANGES:
            r -= weight
            if r < 0:
                break
        if rule is change_extra and not extra:
            continue
        made = rule(text, ctx, rng)
        if made and made[0] != text and made[0].lower().strip(" .`") != text.lower().strip(" .`"):
            t, a, b, label = made
            spans = [(a, b)]
            if rng.random() < .12:  # now and then a second change
                more = rule and choice(rng, [change_number, change_negation, change_antonym, change_entity])(t, ctx, rng)
                if more and more[1] >= b:
                    t, spans, label = more[0], spans + [(more[1], more[2])], 1
            return t, spans, label
    return None


def context(unit_texts, heading, book):
    """What the rules draw replacements from."""
    text = "\n".join(unit_texts)
    prose = CODE.sub(" ", text)
    return {"numbers": list(dict.fromkeys(NUM.findall(text)))[:40], "codes": list(dict.fromkeys(CODE.findall(text)))[:40],
            "names": [n for n in dict.fromkeys(NAME.findall(prose)) if n.lower() not in STOP][:40],
            "words": [w for w in dict.fromkeys(WORD.findall(prose)) if w.lower() not in STOP][:80],
            "book_codes": book["codes"], "book_names": book["names"], "book_words": book["words"]}


# ---- claims about rows, code and lists ---------------------------------------------------------------------------------------

def cells(row):
    return [c.strip() for c in row.strip().strip("|").split("|")]


def row_claim(units, number, rng):
    """(claim, wrong claim, span of the wrong cell) about a cell of a table, or None."""
    rows = [k for k, (kind, _) in enumerate(units) if kind == "r"]
    if len(rows) < 3:
        return None
    first = number
    while first > 0 and units[first - 1][0] == "r":
        first -= 1
    if first == number:
        return None
    head, row = cells(units[first][1]), cells(units[number][1])
    if len(head) != len(row) or len(row) < 2 or not row[0]:
        return None
    c = 1 + int(rng.random() * (len(row) - 1))
    others = [cells(units[k][1])[c] for k in rows if k not in (first, number) and len(cells(units[k][1])) == len(row)]
    others = [o for o in others if o and o != row[c]]
    if not row[c] or len(row[c]) > 160:
        return None
    form = choice(rng, ["{col} of {key} is {cell}.", "For {key}, {col} is {cell}.", "{key}: {cell}.", "{key} has the {col} {cell}.", "The {col} for {key} is {cell}.",
                        "{cell} is the {col} of {key}.", "{key} – {cell}", "{key} means {cell}.", "{cell} belongs to {key}."])
    values = {"col": head[c].lower() if head[c] else "value", "key": row[0]}
    true = form.format(cell=row[c], **values)
    if not others:
        return true, None, None
    wrong = choice(rng, others)
    text = form.format(cell=wrong, **values)
    at = text.find(wrong)
    return true, text, (at, at + len(wrong))


def code_claim(units, number, rng):
    """A claim that quotes a line of code."""
    body = [l.strip() for l in units[number][1].split("\n")[1:] if 6 < len(l.strip()) < 90 and not l.strip().startswith(("```", "//", "#", "/*"))]
    if not body:
        return None
    line = choice(rng, body).lstrip("$> ").rstrip(";:,{ ").replace("`", "'")
    if len(line) < 6:
        return None
    before = units[number - 1][1].rstrip(":. ") if number and units[number - 1][0] == "s" else ""
    form = choice(rng, ["Run `{}`.", "The example uses `{}`.", "Write `{}`.", "`{}` is part of the example.", "The code contains `{}`.", "You can use `{}`.", "{b}: `{}`.", "{b}: `{}`."])
    if "{b}" in form and not before:
        form = "Use `{}`."
    return form.replace("{b}", before), line


def change_code(line, ctx, rng):
    """A changed number, option, name or string of a code line."""
    found = list(re.finditer(r"\d+|--?[a-z][\w-]+|[A-Za-z_]\w{2,}|'[^']+'|\"[^\"]+\"", line))
    if not found:
        return None
    m = choice(rng, found)
    old = m.group(0)
    if old.isdigit():
        new = str(int(old) + choice(rng, [1, 2, 10, 100]))
    elif old in ANT:
        new = choice(rng, ANT[old])
    else:
        pool = [w for c in ctx["codes"] for w in re.findall(r"--?[a-z][\w-]+|[A-Za-z_]\w{2,}", c)] + ctx["code_words"]
        pool = [w for w in pool if w not in line and w.startswith("-") == old.startswith("-")]
        if not pool:
            pool = [w.strip("`") for w in ctx["book_codes"] if w.strip("`") not in line][:50]
        if not pool:
            return None
        new = choice(rng, pool)
        if old[0] in "'\"":
            new = old[0] + new + old[0]
    return put(line, *m.span(), new, 3)


# ---- questions ------------------------------------------------------------------------------------------------------------------

BE = r"(is|are|was|were|can|will|has|must|should|may|does)"


def ask(text, heading, rng):
    """A question that this sentence answers, or None."""
    t = text.strip().rstrip(".:!")
    options = []
    m = re.match(r"^((?:The |An? )?[\w`'./-]+(?: [\w`'./-]+){0,3}) (is|are) (?:an? |the |used |called )", t)
    if m and not re.match(r"^(It|This|That|These|There|They|Those|Here|What|You|We|He|She)\b", t):
        s = re.sub(r"^(The|An?) ", lambda x: x.group(0).lower(), m.group(1))
        options += [f"What {m.group(2)} {s}?", f"what {m.group(2)} {s.replace('`', '')}", f"explain {s}", f"{s} meaning"]
    m = re.match(r"^(?:The |An? )?([\w`'./-]+(?: [\w`'./-]+){0,4}?) " + BE + r"\b (.{8,})$", t)
    if m:
        options += [f"What {m.group(2)} {m.group(3)}?", f"which one {m.group(2)} {m.group(3)}?"]
    m = THIRD.search(t)
    if m and 2 < m.start() < 60:
        options += [f"What {t[m.start():]}?", f"who or what {t[m.start():]}"]
    for pattern in (r"^To ([^,]{6,100}), ", r"^(?:You can |You may )?[Uu]se .{2,60}? to (.{6,100})$", r"\blets? you (.{6,100})$", r"\ballows? you to (.{6,100})$",
                    r"^You can (.{6,100}?) (?:by|with|using) ", r"\bin order to (.{6,80})$", r"^(.{6,80}?) by (?:using|setting|calling|running|adding|passing) "):
        m = re.search(pattern, t)
        if m:
            body = lower_first(m.group(1))
            options += [choice(rng, ["How do I {}?", "how to {}", "How can I {}?", "{}", "i want to {}", "what is the way to {}?", "how can you {}"]).format(body)] * 3
    m = re.match(r"^(.{10,100}?),? because (.{6,})$", t)
    if m:
        options += [f"Why {lower_first(m.group(1))}?", f"what is the reason that {lower_first(m.group(1))}"] * 2
    m = re.match(r"^(?:If|When) ([^,]{6,100}), ", t)
    if m:
        options += [f"What happens if {m.group(1)}?", f"what if {m.group(1)}", f"{m.group(1)}"] * 2
    spans = list(NUM.finditer(t)) + list(CODE.finditer(t)) + list(NAME.finditer(t))
    if spans:
        m = choice(rng, spans)
        what = choice(rng, ["what", "which", "what value"]) if not m.group(0)[0].isdigit() else choice(rng, ["how many", "what number of", "how much"])
        options += [t[:m.start()] + what + t[m.end():] + "?"]
        front = t[:m.start()].rstrip(" ,")
        if len(front.split()) >= 4:
            options += [f"{front} what?"]
    if not options:
        return None
    return choice(rng, options)


def keywords(text, rng):
    """A few bare search words of a sentence."""
    words = [w for w in re.findall(r"[\w.-]{3,}", text) if w.lower() not in STOP]
    if len(words) < 3:
        return None
    n = 2 + int(rng.random() * min(5, len(words) - 1))
    keep = sorted(rng.sample(range(len(words)), min(n, len(words))))
    return " ".join(words[k] for k in keep).lower()


def heading_question(heading, has_code, rng):
    parts = [p for p in heading.split(" > ") if p]
    leaf = parts[-1].strip()
    if len(leaf) < 4:
        return None
    low = lower_first(leaf.replace("`", ""))
    if re.match(r"^\w+ing\b", leaf):
        return choice(rng, [f"how to do {low}", f"How does {low} work?", low, f"{low} in {parts[0]}"])
    if has_code and re.match(r"^(Create|Use|Run|Install|Set|Add|Build|Write|Make|Configure|Change|Get|Start|Define|Check)\b", leaf):
        return choice(rng, [f"How do I {low}?", f"how to {low}", f"I want to {low}"])
    return choice(rng, [f"What is {low}?", f"What about {low}?", f"{low}", f"tell me about {low}", f"how does {low} work", f"explain {low}"])


def noisy(text, rng):
    """A query as it is typed: lower case, a lost word, a typo, other words."""
    r = rng.random()
    if r < .25:
        text = text.lower()
    if rng.random() < .2:
        text = text.rstrip("?.! ")
    if rng.random() < .3:
        text = synonyms(text, rng, .5)
    words = text.split(" ")
    if len(words) > 4 and rng.random() < .2:
        del words[int(rng.random() * len(words))]
    if rng.random() < .12:
        k = int(rng.random() * len(words))
        w = words[k]
        if len(w) > 4 and w.isalpha():
            i = 1 + int(rng.random() * (len(w) - 3))
            words[k] = choice(rng, [w[:i] + w[i + 1:], w[:i] + w[i + 1] + w[i] + w[i + 2:], w[:i] + w[i] + w[i:]])
    return " ".join(words)


def statement(question, answer):
    """A question with its answer as one sentence, where a simple rule does; else both after each other."""
    q = question.strip().rstrip("?")
    m = re.match(r"^(?:Who|What|Which \w+|What \w+) ((?:is|was|were|are|has|had|did not|led|became|caused|made|wrote|began|won|founded|created|controls|"
                 r"decides|gave|took|started|ended|supported|can|could|will|would|may|must|should)\b.*)$", q)
    if m and not re.match(r"^(did|does|do)\b", m.group(1)):
        if re.match(r"^(Who|What) (is|was|are|were) (the|a|an|[A-Z])", q):
            body = re.sub(r"^(is|was|are|were) ", "", m.group(1))
            return f"{upper_first(body)} {m.group(1).split()[0]} {answer}."
        return f"{upper_first(answer)} {m.group(1)}."
    m = re.match(r"^(When|Where) (was|were|is|are) (.*) (\w+ed|born|held|built|found|made|located|known|written|begun)(.*)$", q)
    if m:
        link = "" if re.match(r"(in|on|at|from|during|by|after|before|between|since)\b", answer, re.I) else " in"
        return f"{upper_first(m.group(3))} {m.group(2)} {m.group(4)}{m.group(5)}{link} {answer}."
    m = re.match(r"^(In|At|On|During|From|By) (what|which) (\w+) (was|were|is|are|did|does|do) (.*)$", q)
    if m:
        return f"{upper_first(m.group(5))}: {answer}."
    return f"{q}? {upper_first(answer)}."
