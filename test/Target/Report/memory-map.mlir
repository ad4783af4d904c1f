// RUN: memplan-opt %s --emit=svg --no-in-place --no-forward -q | FileCheck %s --check-prefix=SVG
// RUN: memplan-opt %s --emit=html --no-in-place --no-forward -q | FileCheck %s --check-prefix=HTML
// RUN: memplan-opt %s --emit=plan --no-in-place --no-forward -q -o %t.json
// RUN: memplan-opt %t.json --emit=svg | FileCheck %s --check-prefix=SVG
// RUN: memplan-opt %t.json --emit=html -o %t.html
// RUN: memplan-opt %s --emit=html --no-in-place --no-forward -q | diff - %t.html
// RUN: memplan-opt --compare %t.json %t.json --emit=html | FileCheck %s --check-prefix=TWO
// RUN: memplan-opt %t.json --emit=csv | FileCheck %s --check-prefix=CSV

// Points: 0 exp, 1 and 2 transposes. %a lives [0, 2), %b [1, 3), both at 1: 256 + 256 bytes.
// The field is 1400 - 92 - 24 = 1284 pixels wide, so a point has 428: %a from 92, %b from 520, 856 each.
// 1.04 x 512 bytes are 560 pixels: 256 bytes are 269.23. The field ends at 84 + 560 = 644.
// SVG: <svg xmlns="http://www.w3.org/2000/svg"
// SVG-DAG: <rect class="r activation" x="92.00" y="{{374.77|105.54}}" width="856.00" height="269.23"><title>first
// SVG-DAG: <rect class="r activation" x="520.00" y="{{374.77|105.54}}" width="856.00" height="269.23"><title>a&lt;b&amp;\u202ec
// SVG: <rect class="r input" x="92.00"
// SVG: <rect class="r output" x="948.00"
// The live bytes: 256, 512 from 1 on, 256 from 2 on.
// SVG: <path class="live" d="M92.0 644.0H92.00V374.77H520.00V105.54H948.00V374.77H1376.00V644.00H1376.0"/>
// SVG: arena = lower bound 512 B
// SVG: peak 512 B at 1
// SVG: </svg>

// Nothing of a name is HTML, and nothing is loaded.
// HTML: Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{{[A-Za-z0-9+/]+=}}'; script-src 'sha256-{{[A-Za-z0-9+/]+=}}'
// HTML-NOT: {{(src|href)="?(http|//)}}
// HTML: <script type="application/json" id="plans">[{"version":1,
// HTML-SAME: "node":"first","written_at":[0],"read_at":[1],"arena":0}
// HTML-SAME: "node":"a\u003cb\u0026\u202ec\u003c/script\u003e"
// HTML-SAME: "live":{{\[\[}}0,256],[1,512],[2,256],[3,0]]
// HTML-SAME: </script>
// HTML: window.memplanMap

// TWO: id="plans">[{"version":1,{{.*}},{"version":1,

// CSV: id,lower,upper,size,offset
// CSV-NEXT: b0,0,2,256,
func.func @main(%x: memref<8x8xf32>, %y: memref<8x8xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<8x8xf32> loc("first")
  %b = memref.alloc() : memref<8x8xf32> loc("a<b&\E2\80\AEc</script>")
  linalg.exp ins(%x : memref<8x8xf32>) outs(%a : memref<8x8xf32>)
  linalg.transpose ins(%a : memref<8x8xf32>) outs(%b : memref<8x8xf32>) permutation = [1, 0]
  linalg.transpose ins(%b : memref<8x8xf32>) outs(%y : memref<8x8xf32>) permutation = [1, 0]
  return
}
