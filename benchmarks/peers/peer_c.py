"""Hand-written C: structured ('C struct'), low-rank dual cost ('C lowrank'), dense ('C dense')."""
import ctypes as ct
import os
import subprocess
import time
import numpy as np
import workload as wl

# own joint sin/cos instead of libmvec, several accumulators per reduction
TUNED = ("-DPOLY", "-funroll-loops", "-fvariable-expansion-in-unroller", "--param=max-variable-expansions-in-unroller=4")
HERE = os.path.dirname(os.path.abspath(__file__))


def build(F=None, width=256, extra=()):
    """F given: the sizes are compile-time constants (generated code knows them)."""
    so = os.path.join(wl.build_dir(), f"limit_{F or 0}_{width}{''.join(e[:9] for e in extra)}.so")
    src = os.path.join(HERE, "..", "..", "symdual", "bench", "peers", "limit.c")
    t = time.perf_counter()
    subprocess.check_call(["gcc", "-O3", "-march=native", "-ffast-math", f"-mprefer-vector-width={width}"] + ([f"-DFIXF={F}"] if F else []) + list(extra) + ["-shared", "-fPIC", "-o", so, src, "-lm"])
    build.seconds = time.perf_counter() - t
    return ct.CDLL(so)


def impls(d, lib=None, tag=""):
    """{kernel: {name: (call, loop or None, result)}}; call() once from Python, loop(n) n repeats inside."""
    lib = lib or build()
    keep = []

    def p(a):
        keep.append(a)
        return ct.c_void_p(a.ctypes.data)
    nz, F = d.nz, d.F
    ws, wc = d.w[0::2].copy(), d.w[1::2].copy()
    cF, cc, cu = ct.c_int(F), ct.c_double(d.c), ct.c_double(d.u)
    base = (cF, cc, p(ws), p(wc))
    A = wl.np_jac(d, d.z0, d.u); A[1, 2:] = 0
    Hs = np.zeros((nz, nz)); o = np.zeros(nz)
    z, P, zd, Pd, Ad, Hd = d.z0.copy(), d.P0.copy(), d.z0.copy(), d.P0.copy(), np.zeros((nz, nz)), np.zeros((nz, nz))
    wk = np.zeros((3 * wl.T + 8) * (nz + 8) ** 2 + 12 * wl.T * (nz + 8) + 1000)
    for nm in ("s_dual", "l_dual", "d_dual", "r_dual", "r_ldual", "r_ddual"):
        getattr(lib, nm).restype = ct.c_double
    out = {k: {} for k in "abcde"}

    def reg(k, name, one, rep, args, res):
        f1, fr = getattr(lib, one), getattr(lib, rep)
        if k == "d":
            # one call = one repetition (includes the copy back to the start state)
            call = lambda: fr(ct.c_int(1), *args)
        else:
            call = lambda: f1(*args)
        out[k][name + tag] = (call, lambda n: fr(ct.c_int(n), *args), res)
    reg("a", "C struct", "s_f", "r_f", base + (p(d.z0), cu, p(o)), lambda: o)
    reg("b", "C struct", "s_jac", "r_jac", base + (p(d.z0), cu, p(A)), lambda: A)
    reg("b", "C dense", "d_jac", "r_djac", base + (p(d.z0), cu, p(Ad)), lambda: Ad)
    reg("c", "C struct", "s_hess", "r_hess", base + (p(d.w), p(d.z0), cu, p(d.lam), p(Hs)), lambda: Hs)
    reg("c", "C dense", "d_hess", "r_dhess", base + (p(d.w), p(d.z0), cu, p(d.lam), p(Hd)), lambda: Hd)
    reg("d", "C struct", "s_ekf", "r_ekf", base + (p(d.z0), p(d.P0), p(z), p(P), cu, p(d.y)), lambda: (z, P))
    reg("d", "C dense", "d_ekf", "r_dekf", base + (p(d.z0), p(d.P0), p(zd), p(Pd), cu, p(d.y), p(wk)), lambda: (zd, Pd))
    e = base + (p(d.z0), p(d.P0), p(d.useq), p(d.Wd), ct.c_double(wl.UC), p(wk))
    for nm, one, rep in (("C struct", "s_dual", "r_dual"), ("C lowrank", "l_dual", "r_ldual"), ("C dense", "d_dual", "r_ddual")):
        f1 = getattr(lib, one)
        reg("e", nm, one, rep, e, lambda f1=f1: f1(*e))
    impls.keep = getattr(impls, "keep", []) + [keep]
    return out


if __name__ == "__main__":
    lib = build()
    for F in (2, 30, 100, 300):
        d = wl.make(F)
        Qt, H, R, B, Wt, Uc = wl.np_consts(d)
        ref = {"a": wl.np_f(d, d.z0, d.u), "b": wl.np_jac(d, d.z0, d.u), "c": wl.np_hess(d, d.z0, d.u, d.lam),
               "d": wl.np_ekf(d, d.z0, d.P0, d.u, d.y, Qt, H, R), "e": wl.np_dual(d, d.z0, d.P0, d.useq, Wt, Uc, Qt, H, R, B)}
        im = impls(d, lib)
        for k in "abcde":
            for nm, (call, loop, res) in im[k].items():
                call(); n = 1
                while True:
                    t = time.perf_counter(); loop(n); t = time.perf_counter() - t
                    if t > 5e-3 or n > 1e6: break
                    n *= 4
                best = t / n
                for _ in range(5):
                    t = time.perf_counter(); loop(n); best = min(best, (time.perf_counter() - t) / n)
                r = res()
                pr = zip(r, ref[k]) if isinstance(r, tuple) else [(r, ref[k])]
                err = max(np.max(np.abs(np.asarray(x) - y)) / max(1, np.max(np.abs(y))) for x, y in pr)
                print(F, k, nm, "%.3f us" % (best * 1e6), "err %.1e" % err)
