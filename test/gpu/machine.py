"""Says in one line whether NCCL can be run here through PyTorch: prints its version, or why not and ends with 77."""
import sys


def reason():
    try:
        import torch
        import torch.distributed as dist
    except ImportError as error:
        return "no PyTorch in %s (%s)" % (sys.executable, error)
    if not dist.is_available():
        return "this PyTorch %s has no torch.distributed" % torch.__version__
    if "--cpu" in sys.argv:
        return None
    if not torch.cuda.is_available():
        return "PyTorch %s finds no CUDA device" % torch.__version__
    if not dist.is_nccl_available():
        return "this PyTorch %s has no NCCL" % torch.__version__
    if torch.cuda.nccl.version() < (2, 13):
        return "NCCL %s is older than 2.13" % (torch.cuda.nccl.version(),)
    return None


def main():
    why = reason()
    if why:
        print(why)
        sys.exit(77)
    if "--cpu" in sys.argv:
        print("0.0.0")
        return
    import torch
    print(".".join(map(str, torch.cuda.nccl.version()[:3])))


if __name__ == "__main__":
    main()
