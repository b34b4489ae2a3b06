"""Words in the English names of clinical columns, and the formulas and orders that they stand for.

:mod:`dpsynth.table.suggestions` reads columns' names by these tables. A wrong question costs a reader's time.
So a word belongs here only if it rarely means something else.
"""

from __future__ import annotations

import re


def _set(words: str) -> set[str]:
    return set(words.split())


def _inverse(names: dict[str, str]) -> dict[str, str]:
    return {word: key for key, words in names.items() for word in words.split()}


#: Quantities by their names, without blanks and other signs.
QUANTITY = _inverse(
    {
        "height": "height ht stature bodyheight standingheight bmxht",
        "weight": "weight wt bodyweight bmxwt",
        "bmi": "bmi bodymassindex bmxbmi",
        "waist": "waist waistcircumference waistcirc bmxwaist",
        "hip": "hip hipcircumference hipcirc bmxhip",
        "waist-hip ratio": "whr waisthip waisthipratio waisttohipratio",
        "systolic": "sbp sys systolic sysbp systolicbp systolicpressure systolicbloodpressure sysabp bpsys "
        "apsys bpsystolic aphi bpxsy bpxosy",
        "diastolic": "dbp dia diastolic diabp diasbp diastolicbp diastolicpressure diastolicbloodpressure "
        "diasabp bpdia bpdiastolic aplo bpxdi bpxodi",
        "mean pressure": "map mbp meanbp meanabp meanpressure meanarterialpressure meanbloodpressure "
        "meanarterialbloodpressure",
        "pulse pressure": "pp pulsepressure",
        "sodium": "na sodium sod",
        "potassium": "k potassium pot",
        "chloride": "cl chloride",
        "bicarbonate": "hco3 bicarb bicarbonate tco2",
        "anion gap": "ag aniongap",
        "coma score": "gcs gcstotal totalgcs gcsscore gcssum glasgowcomascale glasgowcomascore",
        "eye opening": "gcse gcseye gcseyes gcseyeopening",
        "verbal response": "gcsv gcsverbal gcsverbalresponse",
        "motor response": "gcsm gcsmotor gcsmotorresponse",
        "bilirubin": "bilirubin totalbilirubin bilirubintotal tbil tbili bilitotal totalbili",
        "direct bilirubin": "directbilirubin bilirubindirect dbil dbili bilidirect conjugatedbilirubin",
        "indirect bilirubin": "indirectbilirubin bilirubinindirect ibil ibili biliindirect "
        "unconjugatedbilirubin",
        "protein": "totalprotein proteintotal",
        "albumin": "albumin alb",
        "globulin": "globulin glob globulins",
    }
)
#: A quantity, its formula, and the units of inputs that the formula needs.
FORMULAS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("bmi", "{weight} / {height} ** 2", {"weight": "kg", "height": "m"}),
    ("waist-hip ratio", "{waist} / {hip}", {}),
    ("mean pressure", "({systolic} + 2 * {diastolic}) / 3", {}),
    ("pulse pressure", "{systolic} - {diastolic}", {}),
    ("anion gap", "{sodium} - {chloride} - {bicarbonate}", {}),
    ("anion gap", "{sodium} + {potassium} - {chloride} - {bicarbonate}", {}),
    ("coma score", "{eye opening} + {verbal response} + {motor response}", {}),
    ("bilirubin", "{direct bilirubin} + {indirect bilirubin}", {}),
    ("protein", "{albumin} + {globulin}", {}),
)
#: What speaks against a formula.
DOUBTS = {
    "mean pressure": "A mean pressure that a monitor measures is not computed",
    "anion gap": "Some laboratories include potassium",
}
#: How a value in a unit is written in the unit that a formula needs.
CONVERSIONS = {
    "kg": {"kg": "", "g": " / 1000", "lb": " * 0.45359237"},
    "m": {"m": "", "cm": " / 100", "mm": " / 1000", "in": " * 0.0254", "ft": " * 0.3048"},
}
#: Units that stand together.
METRIC = {"kg", "g", "m", "cm", "mm"}
#: The units of an input whose unit is unknown.
LIKELY = {"kg": ("kg", "lb"), "m": ("m", "cm", "in")}
#: Units by the words that people write.
CALLED = _inverse(
    {
        "kg": "kg kgs kilogram kilograms kilo kilos",
        "g": "g gram grams",
        "lb": "lb lbs pound pounds",
        "m": "m metre metres meter meters",
        "cm": "cm centimetre centimetres centimeter centimeters",
        "in": "in inch inches",
        "ft": "ft foot feet",
        "years": "years year yr yrs y a",
        "months": "months month mo",
        "weeks": "weeks week wk wks",
        "days": "days day d",
        "hours": "hours hour hr hrs h",
        "minutes": "minutes mins",
        "mmol/l": "mmol/l meq/l",
    }
)
#: How days are written in the unit of an age, and the length of a stay in days.
AGES = {"years": " / 365.25", "months": " / 30.4375", "weeks": " / 7", "days": ""}
LENGTHS = {"days": "", "hours": " / 24", "minutes": " / 1440", "weeks": " * 7"}
#: Words of a name that change nothing.
FILLERS = _set(
    "of at the for on patient patients subject value values result calculated calc computed derived level "
    "blood serum plasma"
)
#: Words of units in names.
WRITTEN = {"mmhg", "mm", "hg", "mmol", "meq", "l", "mg", "dl", "score", "in"} | set(CALLED)
#: Where the statistic that a word names lies among the values.
STATISTIC = _inverse(
    {
        "low": "min minimum lowest nadir trough",
        "mid": "mean avg average median",
        "high": "max maximum highest peak",
        "worst": "worst",
    }
)
#: Measurements whose worst value may be the lowest.
LOW_IS_BAD = _set(
    "gcs coma spo sao o oxygen saturation sat pao po pafi fio ph bp sbp dbp map pressure systolic "
    "diastolic albumin alb hb hgb haemoglobin hemoglobin hct haematocrit hematocrit platelet platelets "
    "egfr gfr ef lvef apgar fev fvc urine output temperature temp sodium na potassium k calcium glucose "
    "hr heart pulse rr resp wbc respiratory rate bicarbonate hco vision acuity score function grip"
)
#: Words that may stand beside a quantity, if they stand beside all columns of a formula.
BESIDE = (
    _set(
        "first last initial final baseline followup admission discharge visit pre post "
        "before after morning evening night sitting standing supine lying left right arm ni noninvasive "
        "invasive mother maternal father paternal birth icu ed triage"
    )
    | STATISTIC.keys()
)
#: Events by their words in the names of dates.
EVENT = _inverse(
    {
        "birth": "birth born dob bday",
        "admission": "admission admit admitted adm doa",
        "discharge": "discharge discharged disch dis",
        "start": "start started begin began",
        "end": "end ended stop stopped finish finished",
        "entry": "entry in from",
        "exit": "exit out to",
        "arrival": "arrival arrived edreg",
        "departure": "departure departed edout",
        "first": "first",
        "last": "last",
        "enrolment": "enrolment enrollment enrolled inclusion included randomisation randomization "
        "randomised randomized baseline consent",
        "follow-up": "followup lastfollowup lastcontact lastseen censored",
        "visit": "visit exam examination encounter index sample assessment interview",
        "diagnosis": "diagnosis diagnosed dx",
        "death": "death died dod deceased",
    }
)
#: Events that are never before an event.
LATER = {
    "admission": ("discharge", "death"),
    "start": ("end",),
    "entry": ("exit",),
    "arrival": ("departure",),
    "first": ("last",),
    "enrolment": ("follow-up", "death"),
    "diagnosis": ("death",),
    "birth": ("admission", "start", "entry", "arrival", "first", "enrolment", "visit", "diagnosis", "death"),
}
#: Start and end of a stay.
BOUNDARIES = (("admission", "discharge"), ("entry", "exit"), ("arrival", "departure"))
#: Events at which an age is asked.
SEEN = ("visit", "admission", "enrolment", "diagnosis")
#: Events that may also be given as an age or a day. Others, such as a first year, may be amounts.
NUMBERED = _set("birth admission discharge start end enrolment diagnosis death")
#: What ends a word such as ``admittime``.
CLOCK = re.compile(r"(?:date|time|datetime|day)$")
#: The length of a stay.
STAYS = _set("los stay lengthstay hospitalstay staylength timeinhospital daysinhospital")
#: What a total counts if its parts may be added up, and words that make no part.
COUNTED = _set(
    "visit visits admissions stays cost costs charge charges procedures doses dose births children deaths "
    "cases drinks cigarettes prescriptions"
)
TOTALS = _set("total tot sum overall all")
NO_PARTS = {*BESIDE, *STATISTIC, "prior", "previous", "per", "rate", "target", "planned", "other", "id"}
#: States that one sex alone can have.
FEMALE = re.compile(
    r"pregnan(?:t|cy|cies)|gravid(?:a|ity)|parity|(?:multi|nulli|primi)parous|(?:post|ante)partum|"
    r"obstetrics?|gyna?ecolog(?:y|ic|ical)|ovar(?:y|ian|ies)|uter(?:us|ine)|cervix|endometri(?:al|um|osis)|"
    r"vagina(?:l)?|(?:pre)?eclampsia|(?:pre|post)?menopaus(?:e|al)|hysterectomy|oophorectomy|miscarriages?|"
    r"lactation"
)
MALE = re.compile(r"prostat(?:e|ic|itis|ectomy)|test(?:is|es|icular)|bph|vasectomy|penis|penile")
#: Words of a name that is about somebody else, or denies.
OTHERS = _set(
    "family fam fh fhx mother father maternal partner wife husband spouse relative relatives parent "
    "parents sister brother daughter no not non"
)
#: Categories of a sex, and answers.
WOMEN = _set("f female woman women girl w")
MEN = _set("m male man men boy")
YES = _set("yes y 1 true t present positive pos")
NO = _set("no n 0 false f absent negative neg")
