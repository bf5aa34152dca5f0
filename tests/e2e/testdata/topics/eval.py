print("epoch 1, loss 0.69")
