"""Word lists of the built-in world.

Names are put together from the parts below (`world.names`), and values that are not names come
from `LITERALS`. The lists are small on purpose: a byte-pair encoding of a few hundred entries
covers the world, and names that share parts ("Brackwell", "Brackmere") make search a real task.
No list shares a word with another where that could make one name a part of another name.
"""

from typing import Final


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


TOWN_STEMS: Final = _words("""
    Brack Velm Tarr Osk Yorv Quen Hadd Pell Garv Ivo Lund Mosk Nerr Thul Wex Corv
    Dask Fenn Gim Hesk Jarl Kest Lorv Murr Nolt Orn Prask Rusk Selv Trod Uld Vask
    Wend Yel Zarn Blen Crod Drev Ebb Flod Grist Holv Irk Jost Kolm Lask Mend Nusk
    Olv Pord Quarl Resk Stelv Tunn Ulv Varg Worv Yask Zeld Bolv Clesk Dorv Elsk Frad
""")
TOWN_LINKS: Final = ("", *_words("er in a os el"))
TOWN_ENDINGS: Final = _words("""
    well mere ford combe ham wick stow ley bury gate worth den
    holm thorpe minster croft field haven mouth stead cliff barrow hithe lode
""")

RIVER_STARTS: Final = _words("""
    Sa Te Lo Ri Wa Ne Mo Ta Ei Ou Du Se Ga Le Pi Ro We Na Mi To
    Ae Ia Da Si Ge La Po Ra Wi No Ma Tu Ke Ue Di Su Gi Li Pa Re
    Wo Ni Me Ki Ya Ye De So Go Lu Pe Ru Bri Cla Dre Fla Gle Hra Kla Stra
""")
RIVER_ENDS: Final = _words("""
    rne lle vva mme nthe sse rrow dda ble cke
    dre ffa gge kle lme nna ppe rra sta tte
    vre xe zze bba cca dle fle gra lve mbe
    nde pre rke ndo rve ske tha tla vle wne
    rbe rda lga mna nca psa rsa lta rtha nwe
""")

HILL_STARTS: Final = _words("""
    Bar Cor Dun Fal Gar Hol Ker Lam Mar Nar Pen Quor Ral Sar Tol Var Wil Yar Zen Bel
    Cam Dol Fer Gol Har Kel Lor Mol Nol Pol Ran Sel Tam Vel Wor Yel Zor Bram Crin Drum
""")
HILL_MIDDLES: Final = _words("ven ick ane oth dle sby ket lin")
HILL_HEADS: Final = _words("Fell Tor Down Knoll Rigg Pike Edge Crag Howe Ridge")

GIVEN_NAMES: Final = _words("""
    Edda Odo Maren Tobin Ilsa Perrin Wendla Hobb Cerys Aldo Brida Joss Nella Rafe Sunniva Torvald
    Una Wystan Yrsa Zeno Agda Bertil Clemence Dunstan Elke Fulk Gisela Havel Ingrid Jory Kinga
    Leofric Milda Norbert Oda Piers Quirin Rosamund Sibley Tamsin Ulrik Verena Wilmot Xenia Ysolt
    Anselm Bettina Corwin Dagny Emeric Frideswide Gawen Hedda Isolde Jorunn Kaspar Linnet Mabel
    Nicodemus Orla Petronel Ragna Sidonie Thea Urban Viggo Wanda Yvo Zita Abel Blaise Crispin
    Delphine Esmond Fenella Godric Hilde Ivor Jocasta Kenelm Lambert Mirjam Nils Ottoline Pascoe
    Rowena Silvan Tilda Ursel Volmar Winifred Ansgar Benedikta Casimir Drusilla
""")
SURNAME_STARTS: Final = _words("""
    Mar Fen Tal Hod Cast Lin Prid Gant Sor Wil Bex Dun Hal Kit Len Mos
    Nab Pim Rot Sil Tup Vin Wad Yap Bur Cob Dib Fid Gos Hub Jel Kib
    Lob Mug Nut Pog Rib Sab Tib Vob Wim Bag Cub Daw Fog Gib
""")
SURNAME_ENDS: Final = _words("""
    low nick son kett man pole bert ling mond cote
    tree nock sley ridge more dock ward gold bright kin
""")

ADJECTIVES: Final = _words("""
    Grey Silver Amber Golden Crimson Idle Merry Patient Bold Silent Swift Humble Proud Gentle Wild
    Northern Southern Eastern Western White Black Scarlet Blue Green Copper Iron Brazen Velvet
    Frosty Sunny Misty Stormy Quiet Lonely Lucky Faithful Restless Sleepy Hungry Clever Royal Rusty
    Painted Gilded Hidden Broken Wandering Dancing Singing Laughing Sworn Winter Summer Autumn
    Spring Morning Evening Midnight Ancient Younger Elder Little Great Distant Steady Speckled
    Spotted Striped Crooked Level Hollow Burning Shining Floating Rising
""")
SHIP_NOUNS: Final = _words("""
    Heron Otter Swallow Falcon Badger Marten Petrel Curlew Plover Osprey Dolphin Seal Gannet Puffin
    Raven Rook Magpie Sparrow Nuthatch Thrush Robin Wren Finch Starling Lark Kestrel Buzzard Merlin
    Harrier Owl Nightjar Cuckoo Siskin Dipper Dove Pigeon Goose Teal Wigeon Mallard Pochard Eider
    Smew Grebe Bittern Stork Crane Egret Spoonbill Ibis Rail Coot Avocet Stilt Lapwing Knot
    Sanderling Dunlin Ruff Snipe Godwit Whimbrel Tern Kittiwake Guillemot Razorbill Auk Shearwater
    Fulmar Albatross Pelican Cormorant Shag Hare Stoat Weasel Polecat Fox Wolf Lynx Bear Stag Roe
    Elk Boar Beaver Squirrel Vole Hedgehog Mole Lizard Newt Toad Adder Salamander Tortoise
""")
TOOLS: Final = _words("""
    Anvil Hammer Chisel Awl Bellows Spindle Shuttle Loom Needle Thimble Shears Bobbin Distaff Trowel
    Plumb Mallet Adze Auger Gimlet Rasp File Tongs Crucible Scoop Mould Kiln Furnace Wheel Lathe
    Plane Saw Hatchet Sickle Scythe Flail Sieve Millstone Churn Barrel Hoop Stave Bung Tankard
    Kettle Cauldron Skillet Oven Peel Rollingpin Whisk Grater Mortar Pestle Vial Flask Balance
    Compass Quadrant Astrolabe Ruler Inkwell Quill Parchment Press Tally Signet Candle Lantern Torch
    Wick Bell Horn Drum Fiddle Lute Harp Pipe Organ Rope Net Hook Anchor Oar Rudder Sail Tiller
    Saddle Halter Stirrup Spur Harness Whip Collar Buckle Button Ribbon Glove Boot Last
""")
PLANTS: Final = _words("""
    Thistle Clover Bramble Hazel Rowan Alder Willow Aspen Birch Larch Juniper Holly Ivy Myrtle
    Heather Bracken Foxglove Bluebell Primrose Cowslip Daisy Poppy Marigold Tansy Tormentil Sorrel
    Nettle Mallow Teasel Burdock Dandelion Chicory Campion Harebell Speedwell Vetch Lupin Lavender
    Rosemary Thyme Sage Fennel Dill Parsley Mint Basil Chervil Lovage Borage Comfrey Barley Oat Rye
    Millet Hop Flax Hemp Apple Pear Quince Medlar Plum Damson Cherry Sloe Sedge Currant Gooseberry
    Mulberry Walnut Chestnut Acorn Beech Maple Hawthorn Blackthorn Spindleberry Dogwood Snowdrop
""")
BOOK_KINDS: Final = _words("""
    Ledger Winter Garden Manual Song House Mirror Shadow Keeper Daughter Clock Voice Map Door Weight
    Colour Memory Ladder River Island Orchard Kingdom Letter Riddle Promise Bridge Crown Cradle Road
    Window Theatre Museum Calendar Catalogue History Anatomy Grammar Hymnal Journal Almanac Atlas
    Primer Herbal Bestiary Chronicle Testament Confession Dialogue Comedy Tragedy Ballad Elegy
    Lament Praise Defence Discourse Essay Fable Legend Lesson Miscellany Notebook Parable Portrait
    Proverb Psalter Sermon Sketch Story Survey Tale Theory Treatise Vision Voyage Wisdom Wonder
""")
BOOK_THINGS: Final = _words("""
    Embers Glass Salt Ashes Feathers Rain Smoke Thorns Echoes Stones Tides Bees Wolves Stars Snow
    Dust Honey Ink Paper Silk Wax Wool Bread Wine Milk Bones Teeth Hands Eyes Dreams Sorrows Joys
    Debts Errors Secrets Questions Answers Numbers Names Shapes Circles Knots Threads Needles
    Lanterns Candles Bells Mirrors Windows Doors Keys Locks Walls Roofs Towers Bridges Roads Rivers
    Lakes Islands Harbours Ships Sails Storms Clouds Winds Thunder Frost Leaves Roots Seeds Apples
    Roses Lilies Moths Ants Spiders Crows Hounds Horses Kings Queens Fools Thieves
""")
BRIDGE_STARTS: Final = _words("""
    Ar Bor Cal Dan Em Fir Gul Hin Im Jor Kur Lim Mon Nim Or Pur Qua Rom Sun Tim
    Ur Vil Wun Yor Zil Al Bin Cun Dor En Fur Gan Hur Il Jun Kor Lan Mun Nur Om
""")
BRIDGE_MIDDLES: Final = _words("a e i o u ai ei ou")
BRIDGE_ENDS: Final = _words("bane cade dock fant gost hart jack lack mott nash pock rast")

LITERALS: Final = {
    "craft": _words("""
        pottery lace basketry glassware cutlery tapestry saddlery bookbinding clockmaking carving
        weaving dyeing enamel stonework thatching joinery
    """),
    "fish": _words("""
        trout perch roach eels grayling salmon barbel bream chub tench gudgeon lamprey
    """),
    "sign": _words("""
        unicorn griffin phoenix dragon mermaid lion leopard centaur sun moon comet sphinx
    """),
    "trade": _words("""
        cooper mason weaver tanner baker brewer carter glazier potter smith tailor miller
        cobbler fletcher printer surgeon painter dyer
    """),
    "cargo": _words("""
        timber grain slate cheese cider leather tallow pepper cinnamon marble coal pitch sugar
        oysters vinegar almonds
    """),
    "stone": _words("""
        granite limestone sandstone basalt flint tuff gneiss chalkstone gritstone porphyry
    """),
    "topic": _words("""
        astronomy beekeeping navigation cookery medicine falconry fencing geometry heraldry
        gardening chess botany music law
    """),
    "month": _words("""
        January February March April May June July August September October November December
    """),
    "prize": _words("""
        goblet medal trophy purse wreath ham blanket cloak teapot goat piglet rooster
    """),
}

COUNT_WORDS: Final = {2: "two", 3: "three", 4: "four"}
